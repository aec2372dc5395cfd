"""What only the paper needs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from pimeter.paper import power_spectral_entropy, spread, white_test


def rows(seed=0, n=500):
    """Features and normal errors."""
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(n, 3)), rng.standard_normal(n)


class TestWhite:
    def test_agrees_with_the_textbook(self):
        X, noise = rows()
        errors = noise * (0.5 + X[:, 0])
        test = white_test(errors, X)
        i, j = np.triu_indices(4)
        full = np.column_stack([np.ones(500), X])
        table = full[:, i] * full[:, j]
        squares = errors**2
        rest = squares - table @ np.linalg.lstsq(table, squares, rcond=None)[0]
        r2 = 1 - rest @ rest / np.sum((squares - squares.mean()) ** 2)
        statistic = r2 / 9 / ((1 - r2) / (500 - 10))
        assert_allclose(test.statistic, statistic, rtol=1e-9)
        assert_allclose(test.p_value, stats.f.sf(statistic, 9, 490), rtol=1e-9)
        assert (test.form, test.n_rows, test.n_columns) == ("full", 500, 10)

    def test_reduced_form_is_chosen_by_size(self, monkeypatch):
        X, noise = rows()
        monkeypatch.setattr(spread, "MAX_CELLS", 4999)
        test = white_test(noise, X)
        table = np.column_stack([np.ones(500), X, X**2])
        rest = noise**2 - table @ np.linalg.lstsq(table, noise**2, rcond=None)[0]
        r2 = 1 - rest @ rest / np.sum((noise**2 - np.mean(noise**2)) ** 2)
        assert_allclose(test.statistic, r2 / 6 / ((1 - r2) / 493), rtol=1e-9)
        assert (test.form, test.n_columns) == ("reduced", 7)
        monkeypatch.undo()
        assert white_test(noise[:10], X[:10]).form == "reduced"
        assert white_test(noise[:11], X[:11]).form == "full"

    def test_linear_residuals_ignore_a_linear_trend(self):
        X, noise = rows()
        bare, trended = (white_test(y, X, residuals="linear").p_value for y in (noise, noise + X @ [1, 2, 3]))
        assert_allclose(bare, trended, rtol=1e-6)
        largest = np.sign(noise) * 1e308 + noise * 1e307
        scaled, huge = (white_test(y, X, residuals="linear").p_value for y in (largest / 1e308, largest))
        assert_allclose(scaled, huge, rtol=1e-6)

    @pytest.mark.parametrize("unit", [1e-200, 1e200])
    def test_unit_and_redundant_columns_do_not_matter(self, unit):
        X, noise = rows()
        X = np.column_stack([X, X[:, 0] > 0.5, np.ones(500)])
        assert_allclose(white_test(noise * unit, X * unit).p_value, white_test(noise, X).p_value, rtol=1e-6)

    @pytest.mark.parametrize(
        ("errors", "X", "options", "message"),
        [
            ([1.0, 2, 3], np.ones((2, 1)), {}, "one row for each of the 3 errors"),
            ([1.0, 2, 3], np.ones((3, 1)), {}, "no feature varies"),
            ([1.0, 2, 3], [[1.0], [2], [3]], {}, "4 are needed"),
            ([1.0] * 9, np.arange(9.0)[:, None], {}, "same absolute value"),
            ([np.nan, 1.0], np.ones((2, 1)), {}, "errors must be finite"),
            (["a"], np.ones((1, 1)), {}, "errors must hold real numbers"),
            ([[1.0]], np.ones((1, 1)), {}, r"errors must have shape \(n,\)"),
            ([1.0, 2], np.ones((2, 1)), {"residuals": "ols"}, "residuals must be"),
        ],
    )
    def test_bad_input(self, errors, X, options, message):
        with pytest.raises(ValueError, match=message):
            white_test(errors, X, **options)

    @pytest.mark.parametrize("n", [30, 200])
    def test_agrees_with_statsmodels(self, n):
        """Also where products repeat columns."""
        from statsmodels.stats.diagnostic import het_white

        X, noise = rows(n=n)
        X = np.column_stack([X[:, 0], X[:, 1] > 0.5])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            *_, statistic, p_value = het_white(noise, np.column_stack([np.ones(n), X]))
        test = white_test(noise, X)
        assert_allclose([test.statistic, test.p_value], [statistic, p_value], rtol=1e-9)

    def test_absolute_values_that_features_determine(self):
        X = np.array([0.0, 1, 1, 1, 0, 1, 0, 0])
        with pytest.raises(ValueError, match="X determines the absolute values of errors"):
            white_test(np.array([1, -1] * 4) * X, X[:, None])


class TestEntropy:
    def test_one_rhythm_has_little_and_an_impulse_all(self):
        # A sine has two components of n, an impulse has all of one size.
        n = 64
        assert_allclose(power_spectral_entropy(np.sin(2 * np.pi * np.arange(n) / 8)), np.log(2) / np.log(n))
        assert_allclose(power_spectral_entropy(np.eye(n)[0]), 1.0)

    def test_independent_errors(self):
        n = 4000
        found = [power_spectral_entropy(np.random.default_rng(i).standard_normal(n)) for i in range(20)]
        assert_allclose(np.mean(found), 1 - 0.4228 / np.log(n), atol=0.002)

    def test_of_squares_it_follows_the_kurtosis(self):
        """Without any pattern; the docstring and the page of Table 2 name these numbers."""
        rng, shape = np.random.default_rng(0), (300, 300)
        for errors, known in (
            (rng.uniform(-1, 1, shape), 0.53),
            (rng.standard_normal(shape), 0.72),
            (rng.standard_t(3, shape), 0.91),
        ):
            found = [power_spectral_entropy(one, squared=True) for one in errors]
            assert_allclose(np.mean(found), known, atol=0.015)  # standard errors up to 0.003

    def test_squares_and_units(self):
        noise = np.random.default_rng(0).standard_normal(300)
        assert power_spectral_entropy(noise, squared=True) == pytest.approx(power_spectral_entropy(noise**2))
        assert power_spectral_entropy(noise * 1e250, squared=True) == pytest.approx(
            power_spectral_entropy(noise, squared=True)
        )

    @pytest.mark.parametrize("errors", [[1.0], [0.0, 0.0], [np.inf, 1.0], []])
    def test_bad_input(self, errors):
        with pytest.raises(ValueError, match="errors must"):
            power_spectral_entropy(errors)
