"""Song Year in every column of Table 2 that one file of 515,345 rows can give; each runs where the file is.

The file has a split of its own: the first 463,715 rows train, the others test. Networks have 100 units and the plain
settings; a quick run takes the excerpt of 1,176 rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from experiments import table2, uci_networks, uci_tuning

if TYPE_CHECKING:
    from experiments.protocol import Unit

NAME, EXCERPT = "song-year", "song-year-excerpt"


def _one_split(settings: table2.Settings) -> list[Unit]:
    return [(name, 1) for name in settings.datasets]


PSIG = replace(
    table2.PSIG,
    columns="psig-song-year",
    title="heteroskedasticity of Song Year (Table 2, P_SIG and PSE)",
    settings=table2.Settings(datasets=(NAME,)),
    quick=table2.Settings(datasets=(EXCERPT,)),
    units=_one_split,
    only_if_named=True,
)
NETWORKS = uci_tuning.Settings(datasets=(NAME,), most_splits=1, large=(NAME,), is_tuned=False)
QUICK = replace(NETWORKS, datasets=(EXCERPT,), large=(EXCERPT,), max_epochs=3, n_members=2)
PAPER = replace(
    uci_networks.PAPER,
    columns="paper-song-year",
    title="the paper's neuron around its network on Song Year (Table 2, paper)",
    settings=NETWORKS,
    quick=QUICK,
    only_if_named=True,
)
QD = replace(
    uci_networks.QD,
    columns="qd-song-year",
    title="a quality-driven ensemble on Song Year (Table 2, QD-Ens, ours)",
    settings=NETWORKS,
    quick=QUICK,
    only_if_named=True,
)
