"""What a trained model predicts, whichever library it comes from.

Models are recognised by the module of their class, so that nothing is imported for models that nobody brought.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np

from pimeter.frames import columns_without_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from pimeter.protocols import FeatureTable

ROWS_PER_TORCH_CALL = 65_536  # of a torch module: what its layers keep of them is in memory at the same time


def predicted(model: Any, X: FeatureTable) -> NDArray[Any]:
    """What a model predicts for the rows of X, as it comes.

    It is a function, an object with a method ``predict``, a torch module, a Keras model, a ``Booster`` of XGBoost, or a
    session of ONNX Runtime.
    """
    with columns_named(X):
        for library, name, predict in KINDS:
            if _is_a(model, library, name):
                return np.asarray(predict(model, X))
        return np.asarray(model.predict(X) if hasattr(model, "predict") else model(X))


@contextlib.contextmanager
def columns_named(X: FeatureTable) -> Iterator[None]:
    """What a model raises because of strings or dates gets a note with the columns that hold them."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if others := columns_without_numbers(X):
            names = ", ".join(map(repr, others[:5]))
            error.add_note(
                f"X has columns that hold no numbers: {names}. If the model takes numbers alone, leave them out, or "
                f"encode them before it: make_pipeline(make_column_transformer((OneHotEncoder(), [{names}]), "
                'remainder="passthrough"), model).'
            )
        raise


def _is_a(model: object, library: str, name: str) -> bool:
    """Whether the class of a model, or one that it inherits from, has this name in this library."""
    return any(one.__name__ == name and one.__module__.partition(".")[0] == library for one in type(model).__mro__)


def _torch(module: Any, X: FeatureTable) -> NDArray[Any]:
    """Predictions of a module in evaluation mode, without gradients, on its own device and in its own precision."""
    import torch

    first = next((one for one in module.parameters() if one.is_floating_point()), torch.zeros(()))
    rows = torch.tensor(_numbers(X), dtype=first.dtype, device=first.device)
    with _evaluating(module), torch.no_grad():
        return np.concatenate(
            [module(part).detach().cpu().double().numpy() for part in rows.split(ROWS_PER_TORCH_CALL)]
        )


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Dropout and the like are off; each submodule is in its own mode again afterwards."""
    training = [one for one in module.modules() if one.training]
    for one in training:  # what module.eval() does, which an exported graph refuses
        one.training = False
    try:
        yield
    finally:
        for one in training:
            one.training = True


def _keras(model: Any, X: FeatureTable) -> NDArray[Any]:
    """Predictions of a Keras model, without its bar of progress."""
    return np.asarray(model.predict(_numbers(X), verbose=0))


def _xgboost(booster: Any, X: FeatureTable) -> NDArray[Any]:
    """Predictions of a booster, which takes tables of its own kind alone."""
    from xgboost import DMatrix

    return np.asarray(booster.predict(DMatrix(X, enable_categorical=True)))


def _onnx(session: Any, X: FeatureTable) -> NDArray[Any]:
    """The first output of a session that has one input."""
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(one.name for one in inputs)
        msg = f"the ONNX session has {len(inputs)} inputs ({names}), expected 1; wrap it in a function f(X)."
        raise ValueError(msg)
    dtype = {"tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64}
    rows = _numbers(X).astype(dtype.get(inputs[0].type, np.float32))
    return np.asarray(session.run(None, {inputs[0].name: rows})[0])


def _numbers(X: FeatureTable) -> NDArray[Any]:
    """The table as an array of numbers, for models that know no columns."""
    rows = np.asarray(X)
    if rows.dtype.kind not in "fiub":
        msg = f"this model takes numbers, but X has dtype {rows.dtype}. Encode the other columns in a function f(X)."
        raise ValueError(msg)
    return rows


KINDS: tuple[tuple[str, str, Callable[[Any, FeatureTable], NDArray[Any]]], ...] = (
    ("torch", "Module", _torch),
    ("keras", "Model", _keras),
    ("xgboost", "Booster", _xgboost),
    ("onnxruntime", "InferenceSession", _onnx),
)
