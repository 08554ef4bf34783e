// Draws the figures of the page with Plotly over the inline SVG that is there already, in the colours of the theme.
(() => {
  "use strict";
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  function colour(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }
  function font() { return getComputedStyle(document.body).fontFamily; }

  const inks = { other: "series-other" };
  function dress(trace) {
    const tone = (trace.meta && trace.meta.tone) || "series-1";
    const hatched = tone === "idle" || tone === "stranded";
    const ground = tone === "unknown" ? "rgba(0,0,0,0)" : colour(hatched ? "idle-ground" : inks[tone] || tone);
    const pattern = { fgcolor: colour("idle-ink"), bgcolor: ground, size: tone === "stranded" ? 4 : 6, solidity: 0.25 };
    if (trace.type === "bar") {
      const line = tone === "unknown" ? { color: colour("line-strong"), width: 1 } : { width: 0 };
      return { ...trace, marker: { ...trace.marker, color: ground, line, pattern: { ...trace.marker.pattern, ...pattern } } };
    }
    if (trace.stackgroup) {
      const line = tone === "unknown" ? { ...trace.line, width: 1, color: colour("line-strong") } : { ...trace.line, color: ground };
      const fillpattern = hatched ? { ...trace.fillpattern, ...pattern, fillmode: "replace" } : undefined;
      return { ...trace, line, fillcolor: ground, fillpattern };
    }
    return { ...trace, line: { ...trace.line, color: ground, width: 2 }, marker: { color: ground, size: 5 } };
  }
  function dressLayout(layout) {
    const axis = { gridcolor: colour("line"), linecolor: colour("line-strong"), zerolinecolor: colour("line-strong"), automargin: true };
    return {
      ...layout,
      height: 270,
      margin: { l: 48, r: 8, t: 8, b: 28 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: font(), size: 11, color: colour("text-soft") },
      hoverlabel: { bgcolor: colour("bg-raised"), bordercolor: colour("line"), font: { color: colour("text"), family: font() } },
      xaxis: { ...layout.xaxis, ...axis, type: "category", nticks: 10, tickangle: 0, showgrid: false, fixedrange: true },
      yaxis: { ...layout.yaxis, ...axis, rangemode: "tozero", fixedrange: true, separatethousands: true },
      bargap: 0.25,
    };
  }

  const plots = [];
  for (const holder of document.querySelectorAll("[data-figure]")) {
    const source = document.getElementById(holder.dataset.figure);
    if (source) plots.push({ holder, figure: JSON.parse(source.textContent), target: null });
  }
  async function draw(plot) {
    if (!plot.target) {
      plot.target = document.createElement("div");
      plot.target.setAttribute("aria-hidden", "true");
      plot.holder.append(plot.target);
    }
    const still = plot.holder.querySelector("svg.chart-svg");
    still.setAttribute("hidden", "");
    const options = { displayModeBar: false, responsive: true };
    try {
      await window.Plotly.react(plot.target, plot.figure.data.map(dress), dressLayout(plot.figure.layout), options);
      plot.holder.classList.add("drawn");
    } catch (error) {
      plot.target.remove();
      still.removeAttribute("hidden");
      throw error;
    }
  }
  function drawAll() { for (const plot of plots) draw(plot); }
  if (window.Plotly && plots.length) {
    drawAll();
    document.addEventListener("themechange", drawAll);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  }
})();
