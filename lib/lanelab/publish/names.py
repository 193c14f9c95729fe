"""Names, dates and versions that hold digits and are no numbers of ours.

The list is closed on purpose: a capitalised word with digits is not a name because of its shape, so
`Speed-41.5` stays a number. What is open (versions, boots, issues, dates) has a narrow shape and is
no exemption before a unit: `v136 tok/s` and `May 2026 tokens` are numbers.
"""

from __future__ import annotations

import re

_UNIT = (
    r"(?:tok(?:ens?)?(?:/s|-per)?|[kKMGTP]i?[Bb](?:/s|it/s|ps)?|[kMGT]?[Hh]z|[kM]?W|B/s|bytes?|bits?|ns|[uµμ]s|ms|s|"
    r"secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|weeks?|x|times|fold|percent|per|streams?|layers?|experts?|"
    r"cells?|requests?|boots?|points?|runs?|rows?|steps?|prompts?|samples?|GPUs?|parameters|trillion|billion|million|"
    r"thousand)(?!\w)|[%‰×]"
)
# what may follow an open name: no more of the number, and no unit
_END = rf"(?!\w|[.,]\d)(?![\s\u00a0\u2009\u202f‐‑-]*(?:{_UNIT}))"
_MONTH = (
    "(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|"
    "Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d\d"
_DOTTED = r"\d{1,3}(?:\.\d{1,3}){0,3}(?:(?:rc|a|b|post|\.dev|\.post)\d{1,3})?(?:\+[a-z][\w.]*)?"
_SOFTWARE = (
    "Python|CUDA|cuDNN|NCCL|vLLM|SGLang|PyTorch|[Tt]orch|[Tt]ransformers|Triton|FlashInfer|Quarto|Ubuntu|Debian|Linux|"
    "PCIe|NVLink|DuckDB|[Pp]apermill|[Dd]river|[Vv]ersion|[Rr]elease|HTTP/|Unicode"
)
_ISSUE_WORD = (
    r"(?:(?:PRs?|[Pp]ull requests?|[Ii]ssues?)\s+#?|(?:[Ss]ee|[Bb]ugs?|[Ff]ix(?:es|ed)?(?: by| in)?|[Cc]loses)\s+#)"
)
_AND = r"(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+|/)"

NAMES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_YEAR}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?:T\d{{2}}:\d{{2}}(?::\d{{2}})?Z?)?{_END}",
        rf"\b(?:{_DAY}\s+)?{_MONTH}\s+(?:{_DAY},\s+)?{_YEAR}{_END}",
        rf"(?<![\w.,]){_DAY}\s+{_MONTH}\b(?!\s*\d)",
        rf"\bPRs\s+\d{{3,6}}(?:{_AND}\d{{3,6}}(?!\w|[.,]\d))*{_END}",
        # issues: after their word, or in a list that begins so
        rf"\b{_ISSUE_WORD}\d{{1,6}}(?:{_AND}(?:PR\s+|issue\s+)?#\d{{1,6}}(?!\w|[.,]\d))*{_END}",
        rf"\bRFC[ -]\d{{3,4}}{_END}",
        rf"\bPEP[ -]\d{{1,4}}{_END}",
        rf"\bCVE-{_YEAR}-\d{{4,7}}{_END}",
        rf"\bISO[ -](?:8601|3166|639){_END}",
        rf"\b(?:{_SOFTWARE})\s*(?<![A-Za-z])v?{_DOTTED}{_END}",
        rf"\bv\d{{1,3}}(?:\.\d{{1,3}}){{1,2}}{_END}",  # v1.2.3
        rf"\bv\d{{1,3}}[a-z]?{_END}",  # a boot: v24, v19b
        rf"(?<![\w.,])\d{{1,2}}\.\d{{1,3}}\.\d{{1,3}}\+[a-z]\w*(?:\.\w+)*{_END}",  # 2.11.0+cu130
        r"\b127\.0\.0\.1\b(?!\.\d)",
        rf"(?<![\w.,])0\d-(?!(?:{_UNIT}))[a-z]+(?:-[a-z]+)*(?!\w)",  # a step: 04-decode
        rf"\bC\d{{1,3}}{_END}",  # a load of so many streams: C80
        # closed names
        r"\bMiMo-V2(?:\.\d)?(?:-(?:Pro|Flash))?(?!\w|[.,]\d)",
        r"\bQwen[23](?:\.5)?(?:-\d{1,3}(?:\.\d)?B)?(?:-A\d{1,2}B)?(?:-[A-Z][A-Za-z]+)*(?!\w|[.,]\d|-\d)",
        r"\b(?:[AHB]100|H200|B[23]00|GH200|GB[23]00|L40S?|DGX-[12])(?!\w|[.,]\d|-\d)",
        r"\b(?:(?:MX|NV|[Mm]x|[Nn]v)?(?:FP|fp)(?:4|6|8|16|32|64)|(?:BF|bf)16|(?:TF|tf)32|U?E[2458]M[0-3]|[Uu]?[Ii](?:nt|NT)(?:4|8|16|32|64)|"
        r"float(?:8|16|32|64)|[wW]4[aA](?:4|8|16))(?!\w|[.,]\d|-\d)",
        r"\b(?:SM|sm)_?(?:70|75|80|86|89|90|100|103|110|120|121)[af]?(?!\w|[.,]\d|-\d)",
        r"\bcu1[1-3]\d(?!\w|[.,]\d|-\d)",
        r"\b(?:x86(?:[-_]64)?|x64|aarch64|arm64|amd64|[Uu][Tt][Ff]-(?:8|16)|[Ss][Hh][Aa]-?256|base64|ext4|IPv[46]|EAGLE-[123])(?!\w|[.,]\d|-\d)",
    )
)  # fmt: skip
