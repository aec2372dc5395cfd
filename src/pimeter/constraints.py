"""Constraints of parameters, for the tables of estimators in scikit-learn's form."""

from numbers import Real

from sklearn.utils._param_validation import Interval


class Level(Interval):
    """A number between 0 and 1, both excluded; its message has a cure for levels in per cent."""

    def __init__(self) -> None:
        super().__init__(Real, 0, 1, closed="neither")

    def __str__(self) -> str:
        return f"{super().__str__()}, such as 0.95 for 95 %"
