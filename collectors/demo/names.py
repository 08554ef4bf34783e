"""What people call their jobs, including names that break careless pages, exports and parsers. Pure."""

from __future__ import annotations

from random import Random

NASTY = (
    "=1+1",
    '=HYPERLINK("http://example.invalid","x")',
    "+cmd|' /C calc'!A0",
    "@SUM(A1:A9)",
    "<img src=x onerror=alert(1)>",
    "<script>alert('job')</script>",
    "train, lr=1e-4, bs=64",
    'say "hello"',
    "it's a test; DROP TABLE jobs;--",
    "обучение-модели",
    "訓練ジョブ",
    "تدريب النموذج",
    "naïve café ☕",
    "back\\slash\\n",
    "tab\there",
    "{{ settings.SECRET_KEY }}",
    "%s %d %n",
    "a" * 300,
    "",
)
_VERBS = ("train", "finetune", "eval", "pretrain", "ablate", "distill", "infer", "embed", "prep", "sim")
_NOUNS = ("resnet", "vit", "mamba", "unet", "moe", "bert", "diffusion", "gnn", "tokenizer", "md", "rl", "baseline")
_SERVICES = ("chat", "rank", "ocr", "embed", "translate", "asr", "safety", "vision-api", "complete", "rerank")
NASTY_SHARE = 0.004


def job_name(rng: Random) -> str:
    if rng.random() < NASTY_SHARE:
        return rng.choice(NASTY)
    return f"{rng.choice(_VERBS)}-{rng.choice(_NOUNS)}-{rng.randrange(1, 90)}"


def service_name(rng: Random) -> str:
    return f"{rng.choice(_SERVICES)}-{rng.choice('abcdef')}{rng.randrange(2, 9)}"
