"""A meter for prediction intervals: one neuron measures how uncertain any trained model is."""

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Descent",
    "QuantileNeuron",
    "absolute_errors",
    "quantile",
    "sided_errors",
]

if TYPE_CHECKING:
    from pimeter.errors import absolute_errors, sided_errors
    from pimeter.neuron import Descent, QuantileNeuron
    from pimeter.quantiles import quantile
else:
    # Hidden from type checkers: with a module-level __getattr__ in sight they would accept any misspelt name.
    _MODULE_OF = {
        "Descent": "neuron",
        "QuantileNeuron": "neuron",
        "absolute_errors": "errors",
        "quantile": "quantiles",
        "sided_errors": "errors",
    }

    def __getattr__(name):
        if name not in _MODULE_OF:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
