// Conveniences on top of pages that are complete without them: theme switch, keyboard, menus.
(() => {
  "use strict";
  const root = document.documentElement;

  const themes = ["auto", "light", "dark"];
  const button = document.querySelector("[data-theme-switch]");
  function showTheme() {
    const now = root.dataset.theme || "auto";
    button.querySelector("[data-theme-name]").textContent = now;
  }
  function setTheme(next) {
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    const age = next === "auto" ? 0 : 31536000;
    document.cookie = `theme=${next}; path=/; max-age=${age}; samesite=lax`;
    document.dispatchEvent(new CustomEvent("themechange"));
  }
  if (button) {
    button.hidden = false;
    showTheme();
    button.addEventListener("click", () => {
      const now = themes.indexOf(root.dataset.theme || "auto");
      setTheme(themes[(now + 1) % themes.length]);
      showTheme();
    });
  }

  // A menu closes on Escape and on a click elsewhere; a filter menu that changed submits its form when it closes.
  const menus = [...document.querySelectorAll("details.menu")];
  for (const menu of menus) {
    let changed = false;
    menu.addEventListener("change", () => { changed = true; });
    menu.addEventListener("toggle", () => {
      if (menu.open) {
        for (const other of menus) if (other !== menu) other.open = false;
        const first = menu.querySelector(".menu-body a, .menu-body input");
        if (first && menu.dataset.focus !== undefined) first.focus();
      } else if (changed && menu.dataset.submit !== undefined) {
        menu.closest("form").requestSubmit();
      }
    });
  }
  document.addEventListener("click", (event) => {
    for (const menu of menus) if (menu.open && !menu.contains(event.target)) menu.open = false;
  });

  // Empty fields do not belong in an address that is sent to a colleague.
  for (const form of document.querySelectorAll("form.filters")) {
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    });
  }

  const help = document.querySelector("dialog[data-help]");
  let awaiting = 0;
  function typing(target) {
    return target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]") !== null;
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      for (const menu of menus) if (menu.open) { menu.open = false; menu.querySelector("summary").focus(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      const field = document.querySelector("[data-search]");
      if (!field) return;
      event.preventDefault();
      const menu = field.closest("details");
      if (menu) menu.open = true;
      field.focus();
    } else if (event.key === "?" && help) {
      event.preventDefault();
      if (help.open) help.close();
      else help.showModal();
    } else if (event.key === "g") {
      awaiting = Date.now();
    } else if (Date.now() - awaiting < 1500) {
      awaiting = 0;
      const link = document.querySelector(`.rail a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
    }
  });

  // A cell of a heat map says what it is when pointed at: thousands of titles would weigh more than the map.
  for (const heat of document.querySelectorAll("[data-heat]")) {
    const names = [...heat.querySelectorAll("tr.names th")].map((cell) => cell.textContent);
    heat.addEventListener("mouseover", (event) => {
      const cell = event.target.closest("tbody td");
      if (cell && !cell.title) {
        cell.title = `${cell.parentElement.cells[0].textContent} · ${names[cell.cellIndex]} · ${cell.textContent}`;
      }
    });
  }

  // Typing narrows the list of a long filter menu.
  for (const field of document.querySelectorAll("[data-narrow]")) {
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      for (const label of field.closest(".menu-body").querySelectorAll("label[data-option]")) {
        label.hidden = !label.textContent.toLowerCase().includes(wanted);
      }
    });
    field.closest(".narrow").hidden = false;
    field.addEventListener("change", (event) => event.stopPropagation());
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); field.closest("details").open = false; } });
  }
})();
