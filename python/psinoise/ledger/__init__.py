"""A privacy budget that is charged before anything is drawn, and refuses when it is spent.

**What is proven.** All that a ledger releases is (epsilon, delta)-private together, for the
neighbors that its adjacency names, if the mechanisms and their order are fixed without looking at
what was released. The *queries* may depend on earlier results: that is adaptive composition (Y.
Zhu, J. Dong and Y.-X. Wang, "Optimal accounting of differential privacy via characteristic
function", AISTATS 2022, theorem 10). When to stop may depend on them too, since what was not
released is post-processing of what would have been. A refusal tells nothing about the data: it is
computed from parameters.

Choosing the *mechanism* of the next release (its law, size or sampling) by what earlier ones
returned is another matter. That takes a privacy filter, and the bound of a composition that was
fixed in advance is not one in general (R. Rogers, A. Roth, J. Ullman and S. Vadhan, "Privacy
odometers and filters", NIPS 2016). One mechanism for all releases, or a list of them that was
written down before, is covered. For everything else there is ``adaptive=True``: a filter of Renyi
divergences, or of largest losses alone where delta is 0, and an odometer; ``_filter`` has the
statements and their proofs.

**Fail closed.** A charge is entered before random bits are drawn, and stays when the release fails
after that: whether it fails may depend on the data, and is then an answer. What cannot be certified
does not fit, and is told from what would exceed the budget. What is counted is what is released: an
array of the ledger's own.

**Durable.** A ledger in a file (`psinoise.Ledger.create`, `psinoise.Ledger.open`) has every charge
on the disk before bits are drawn. Processes share its budget, and a charge that the file does not
know was not released; ``_journal`` has the order of things, and what of copies and changes is
noticed. A ledger in memory belongs to one process. Ledgers are neither copied nor pickled.
"""

from __future__ import annotations

from psinoise.ledger._charge import Charge
from psinoise.ledger._journal import head_of
from psinoise.ledger._ledger import Ledger

__all__ = ["Charge", "Ledger", "head_of"]
