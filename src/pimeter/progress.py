"""Jobs that run at the same time: a line for each that is done, and scikit-learn's callbacks, which came with 1.9."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from sklearn.utils.parallel import Parallel

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FollowedFit", "results_of"]

try:
    from sklearn.callback import CallbackSupportMixin as FollowedFit
    from sklearn.callback import with_callbacks
except ImportError:  # no set_callbacks

    class FollowedFit:  # type: ignore[no-redef]
        """The base of estimators whose `fit` callbacks may follow: there are none."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """The method as it is: this scikit-learn has no callbacks."""
        return method


def results_of(jobs: list[Any], what: str, estimator: Any) -> list[Any]:
    """Results of delayed jobs, as many at a time as `n_jobs` of the estimator says; with its `verbose` a line each.

    Callbacks that were set with ``set_callbacks`` are called for each job.
    """
    done: list[Any] = _followed(estimator, jobs, what)
    return done


@with_callbacks  # type: ignore[untyped-decorator]
def _followed(estimator: Any, jobs: list[Any], what: str) -> list[Any]:
    """Results of jobs; the estimator comes first, as scikit-learn wants it."""
    start, found = perf_counter(), []
    running = Parallel(n_jobs=estimator.n_jobs, return_as="generator")(jobs)
    is_heard = bool(getattr(estimator, "_skl_callbacks", None))
    every = estimator._init_callback_context(max_subtasks=len(jobs)) if is_heard else None
    if every is not None:
        every.call_on_fit_task_begin(estimator=estimator)
    for _ in jobs:
        task = None if every is None else every.subcontext(task_name=what).call_on_fit_task_begin(estimator=estimator)
        found.append(next(running))
        if task is not None:
            task.call_on_fit_task_end(estimator=estimator)
        if estimator.verbose:
            done = f"{what} {len(found)} of {len(jobs)}, {perf_counter() - start:.1f} s"
            print(f"[{type(estimator).__name__}] {done}", flush=True)  # noqa: T201 (asked for)
    if every is not None:
        every.call_on_fit_task_end(estimator=estimator)
    return found
