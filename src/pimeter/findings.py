"""What a result says, as fields: a headline, findings and what to do. Pages, plots and terminals only arrange them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_SENTENCE = 80  # characters of a line of a table


@dataclass(frozen=True)
class Headline:
    """The answer in one sentence or two.

    Attributes
    ----------
    claim : str
        The answer itself.
    evidence : str
        How sure it is, and what it rests on.

    Examples
    --------
    >>> from pimeter.findings import Headline
    >>> print(Headline("It will rain.", "Two of three models say so."))
    It will rain. Two of three models say so.
    """

    claim: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.claim} {self.evidence}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One question about a model, with its answer.

    Attributes
    ----------
    name : str
        One word for it.
    question : str
        What is asked.
    sentence : str
        The answer.
    advice : str
        What to do; empty if nothing is to be done.
    code : str
        Code that does it; empty if there is none.
    value, reference : float
        The statistic, and what it would be if nothing were wrong; NaN where it cannot be said.
    lower, upper : float
        Bounds of an interval for the true value; NaN where none is known.
    p_value : float
        How often chance alone gives a statistic as extreme as this; NaN where no such test is made.
    threshold : float
        How far the value may be from the reference before it matters, in the units of both; NaN where there is no such
        limit.
    significance : float
        The largest p-value that raises an alarm, so how often chance alone may raise it; NaN where chance cannot.
    remedy : str
        One or two words for the advice, the same in all findings that advise the same; empty where there are none.
    rows : int
        How many rows were looked at.
    """

    name: str
    question: str
    sentence: str
    advice: str = ""
    code: str = ""
    value: float = math.nan
    reference: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    p_value: float = math.nan
    threshold: float = math.nan
    significance: float = math.nan
    remedy: str = ""
    rows: int

    @property
    def raised(self) -> bool:
        """Whether something is to be done."""
        return bool(self.advice)


@dataclass(frozen=True)
class Diagnosis:
    """What the checks of a model found, and what to do.

    Attributes
    ----------
    findings : tuple of Finding
        One for each question, those that raise an alarm and those that do not.
    advice : tuple of str
        What to do, one sentence or two for each finding that raises an alarm, or that there is nothing to do.
    code : str
        Lines of code to paste; empty if there are none.
    options : tuple of str
        Options of the command that does the same; empty if there are none.
    level_span : tuple of int
        Where the confidence level stands in the code, its first character and the one after its last, so that a page
        can put another one there; (0, 0) if the code names none.

    Examples
    --------
    >>> from pimeter.findings import Diagnosis, Finding
    >>> few = Finding(name="rows", question="Are there enough rows?", sentence="No: 3.", advice="Add rows.", rows=3)
    >>> found = Diagnosis.of([few], "Nothing to do.")
    >>> found.raised, found.advice, found["rows"].sentence
    (('rows',), ('Add rows.',), 'No: 3.')
    >>> found
    Diagnosis: 1 of 1 findings ask for something
    ! rows  No: 3.
    """

    findings: tuple[Finding, ...]
    advice: tuple[str, ...]
    code: str
    options: tuple[str, ...] = ()
    level_span: tuple[int, int] = (0, 0)

    @classmethod
    def of(cls, findings: Iterable[Finding], otherwise: str, code: str = "") -> Diagnosis:
        """Advice and code of the findings that raise an alarm, if none does the sentence for that case; then code."""
        found = tuple(findings)
        raised = [finding for finding in found if finding.raised]
        lines = filter(None, [*(finding.code for finding in raised), code])
        return cls(found, tuple(finding.advice for finding in raised) or (otherwise,), "\n".join(lines))

    def __getitem__(self, name: str) -> Finding:
        """The finding of this name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        msg = f"{name!r} is not a finding; there are {', '.join(finding.name for finding in self.findings)}."
        raise KeyError(msg)

    @property
    def raised(self) -> tuple[str, ...]:
        """Names of the findings that ask for something to be done."""
        return tuple(finding.name for finding in self.findings if finding.raised)

    def __repr__(self) -> str:
        width = max((len(finding.name) for finding in self.findings), default=0)
        table = [
            f"{'!' if finding.raised else ' '} {finding.name:<{width}}  {shorten(finding.sentence, LONGEST_SENTENCE)}"
            for finding in self.findings
        ]
        return "\n".join([f"Diagnosis: {len(self.raised)} of {len(self.findings)} findings ask for something", *table])

    def __str__(self) -> str:
        lines = [f"{'!' if finding.raised else ' '} {finding.sentence}" for finding in self.findings]
        return "\n".join([*lines, "", *self.advice, *([self.code] if self.code else [])])
