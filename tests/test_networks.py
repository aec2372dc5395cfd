"""The networks of the experiments, and the experiments that train them, on a tiny scale."""

from __future__ import annotations

import dataclasses
import sys
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.metrics import mean_pinball_loss

from experiments import __main__ as cli
from experiments import (
    data,
    fig2,
    fig3,
    networks,
    report,
    stacked,
    synthetic,
    table1,
    uci_networks,
    uci_reasons,
    uci_splits,
    uci_tuning,
)
from experiments.protocol import RefusedError, Store, run
from pimeter import ForecastIntervals
from pimeter.evaluation.backtesting import rolled_forward

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.slow
SMALL = networks.Training(n_hidden=20, max_epochs=60)
TINY = dataclasses.replace(table1.QUICK, n_pairs=60, n_positions=21, n_draws=50, max_epochs=2)
PACKAGES = {"pimeter", "numpy", "scipy", "scikit-learn", "torch"}


class TestLosses:
    target = torch.tensor([[0.0], [1.0], [2.0], [5.0]])
    output = torch.tensor([[-1.0, 1.0], [0.0, 3.0], [2.5, 4.0], [1.0, 4.5]])

    def test_squared_error(self):
        assert networks.squared_error(self.target, self.output[:, :1]).item() == pytest.approx((1 + 1 + 0.25 + 16) / 4)

    def test_pinball(self):
        expected = sum(
            mean_pinball_loss(self.target[:, 0], self.output[:, i], alpha=p) for i, p in enumerate((0.1, 0.9))
        )
        assert networks.pinball((0.1, 0.9))(self.target, self.output).item() == pytest.approx(expected)

    def test_quality_driven(self):
        # The first two are inside, at least .5 from an end, where a softening of 160 is a step.
        value = networks.quality_driven(0.9, penalty=0.01)(self.target, self.output).item()
        assert value == pytest.approx((2 + 3) / 2 + 0.01 * 4 / (0.9 * 0.1) * (0.9 - 0.5) ** 2, rel=1e-6)


class TestTraining:
    x = np.linspace(-2, 2, 200)

    def test_it_learns_a_curve(self):
        predict, n_parameters = networks.train(
            self.x, np.abs(self.x), networks.squared_error, SMALL, np.random.default_rng(0)
        )
        assert n_parameters == 3 * 20 + 1
        assert predict(self.x).shape == (200, 1)
        assert np.sqrt(np.mean((predict(self.x)[:, 0] - np.abs(self.x)) ** 2)) < 0.1

    def test_it_depends_on_its_stream_alone(self):
        def trained(seed):
            how = dataclasses.replace(SMALL, max_epochs=2)
            return networks.train(self.x, self.x, networks.squared_error, how, np.random.default_rng(seed))[0](self.x)

        before = torch.random.get_rng_state()
        first = trained(1)
        assert torch.equal(torch.random.get_rng_state(), before)
        torch.rand(3)
        assert_array_equal(trained(1), first)
        assert (trained(2) != first).any()

    def test_patience(self):
        how = dataclasses.replace(SMALL, max_epochs=1000, patience=1, learning_rate=1.0, decay=0.0)
        counted = []

        def loss(target, output):
            counted.append(1)
            return networks.squared_error(target, output)

        networks.train(self.x, self.x, loss, how, np.random.default_rng(0))
        assert len(counted) < 2 * 1000

    def test_bounds_start_where_they_are_told(self):
        how = dataclasses.replace(SMALL, max_epochs=0)
        start = networks.train(self.x, self.x, networks.squared_error, how, np.random.default_rng(0), start=(-9.0, 9.0))
        assert_allclose(start[0](self.x).mean(axis=0), [-9, 9], atol=2)

    @pytest.mark.parametrize("residual", [False, True])
    def test_lstm_learns_what_follows(self, residual):
        series = np.sin(np.arange(600) / 5)[:, None]
        origins = np.arange(8, 590)[:, None]
        x, y = series[origins + np.arange(-8, 0)], series[origins + np.arange(3), 0]
        how = networks.RecurrentTraining(
            n_hidden=8, max_epochs=12, learning_rate=0.01, batch_size=32, residual=residual
        )
        predict, n_epochs = networks.train_lstm(x, y, how, np.random.default_rng(0))
        assert 1 <= n_epochs <= 12
        stays = np.repeat(x[:, -1], 3, axis=1)
        assert np.mean((predict(x) - y) ** 2) < 0.2 * np.mean((stays - y) ** 2)
        # An hour later the last value is larger: a residual network moves with it, the sum of a plain one is bounded.
        moved = predict(x + 100.0)
        assert (np.abs(moved - 100.0).max() < 10.0) == residual

    def test_missing_torch_names_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(ImportError, match=r"pimeter\[experiments\]"):
            networks.load_torch()


class TestTable1:
    @pytest.fixture(scope="class")
    @staticmethod
    def rows(tmp_path_factory):
        experiment = dataclasses.replace(table1.EXPERIMENT, settings=TINY)
        return run(experiment, TINY, Store(tmp_path_factory.mktemp("table1"), "table1"))

    def test_ideal_bounds(self):
        asked = synthetic.Problem("normal", "sin(x)", np.array([1.0, 2.0]))
        expected = 0.3 * np.sin([[1.0], [2.0]]) + 0.2 * np.array([[1.0], [4.0]]) * stats.norm.ppf([0.025, 0.975])
        assert_allclose(asked.points(synthetic.TAIL_LEVELS), expected)
        assert asked.rmse(expected + np.array([0.1, -0.1])) == pytest.approx(0.1)
        assert asked.coverage(expected) == pytest.approx(0.95)
        draws = asked.draw(np.full(200_000, 2.0), np.random.default_rng(0))
        # The .975 point has density .058 / .8: a standard error of .005; four of these.
        assert_allclose(np.quantile(draws, [0.025, 0.975]), expected[1], atol=0.02)

    def test_every_method_says_what_it_saw(self, rows):
        seen = {row["method"]: row["targets"] for row in rows}
        assert seen["SQR"] == seen["QD"] == seen["scaled, equal"] == 60 + 50
        assert seen["f + PIM"] == seen["f + PIM, signed"] == seen["f + PIM, sided"] == 60 + 21 * 50
        assert seen["numpy.quantile"] == 21 * 50
        assert {row["parameters"] for row in rows if row["method"] in {"SQR", "QD"}} == {402}
        assert {row["parameters"] for row in rows if row["method"] == "f + PIM"} == {301}
        assert len(rows) == 2 * 10

    def test_signed_neurons_undo_the_bias_of_f(self, rows):
        # After two epochs f is far off, which the symmetric interval suffers from and the signed one does not.
        rmse = {row["method"]: row["rmse"] for row in rows if row["noise"] == "normal"}
        assert rmse["f + PIM, signed"] < rmse["f + PIM"]

    def test_published_values_stand_beside_ours(self, rows):
        shown = report.tables(table1.EXPERIMENT, rows)
        normal = {row["method"]: row for row in next(iter(shown.values()))}
        assert normal["f + PIM"]["RMSE, paper"] == 0.218
        assert normal["SQR"]["parameters, verdict"] == ""
        assert normal["numpy.quantile"]["RMSE, paper"] == ""

    def test_words_follow_the_rows(self, rows):
        text = table1.finding(rows)
        assert "the neurons saw 1,110 targets, SQR and QD 110" in text
        better = [{**row, "rmse": 0.0001} if row["method"] == "scaled, equal" else row for row in rows]
        assert "the best of our widths, scaled, equal, comes to 0.000, which is within SQR's" in table1.finding(better)
        crossed = [{**row, "coverage": -0.5 if row["method"] == "QD" else 0.9} for row in rows]
        assert "Bounds that crossed in training and stayed so: QD with normal noise in 1 of 1" in table1.finding(
            crossed
        )

    def test_versions_name_torch(self):
        for experiment in (table1.EXPERIMENT, fig2.EXPERIMENT, fig3.EXPERIMENT):
            assert set(experiment.packages) == PACKAGES


def test_fig2_draws_a_trial_of_table1_with_printed_neurons(tmp_path):
    settings = dataclasses.replace(TINY, widths=())
    rows = run(fig2.EXPERIMENT, settings, Store(tmp_path, "fig2"))
    trial = run(table1.EXPERIMENT, settings, Store(tmp_path, "table1"))
    (table,) = fig2.tables(rows).values()
    drawn = {str(noise): number for noise, number in fig2.units(settings)}
    measured = {(row["noise"], row["method"]): row["rmse"] for row in trial if row["trial"] == drawn[row["noise"]]}
    for row in table:
        if row["method"] in {"SQR", "QD"}:
            assert row["RMSE"] == pytest.approx(measured[row["noise"], row["method"]])
        else:
            assert row["RMSE"] > 0  # trained as printed, on targets of its own
    crossed = [{**row, "lower": row["upper"] + 1} if row["curve"] == "SQR" else row for row in rows]
    assert "Normal noise: SQR: training collapsed, the bounds crossed." in fig2.headline(crossed)
    assert report.draw(fig2.EXPERIMENT, crossed, tmp_path / "fig2.png")


class TestFig3:
    settings = fig3.Settings(n_trials=1, n_past=4, horizon=5, n_train=200, max_epochs=1)

    @pytest.fixture
    def prices(self, monkeypatch):
        walk = 50 + np.cumsum(np.random.default_rng(0).standard_normal((800, 1)), axis=0)
        prices = walk + np.array([0.0, 0.5, -0.5, 0.1])
        monkeypatch.setattr(fig3, "general_electric", lambda: prices)
        return prices

    @pytest.mark.filterwarnings("ignore:.*independent errors:pimeter.CoverageWarning")  # of an LSTM hardly trained
    def test_rows_tables_words_and_figure(self, prices, tmp_path):
        rows = run(fig3.EXPERIMENT, self.settings, Store(tmp_path, "fig3"))
        assert [row["step"] for row in rows] == 6 * [1, 2, 3, 4, 5]
        assert {(row["network"], row["scaling"]) for row in rows} == set(
            product(fig3.NETWORKS, (fig3.TRAINING, fig3.OWN))
        )
        assert {row["n_windows"] for row in rows} == {600 - 300 - 5 + 1}
        for name in fig3.NAMES:
            assert all(0 <= row[f"{name}_coverage"] <= 1 and row[f"{name}_width"] > 0 for row in rows)
        scale = prices[:200].max() - prices[:200].min()
        # In either scale, all is stored in units of the training rows' range.
        assert_allclose(
            [row["last_close"] * scale + prices[:200].min() for row in rows], np.tile(prices[-5:, 3], 6), rtol=1e-12
        )
        errors = [row["last_close_rmse"] for row in rows]
        assert_allclose(errors, np.tile(errors[:5], 6))
        coverage = next(iter(fig3.tables(rows).values()))
        plain = fig3.chosen(rows, fig3.PLAIN)
        assert coverage[0]["all steps"] == pytest.approx(np.mean([row["static_coverage"] for row in plain]))
        widths = {f"{name}_width": 1.0 for name in ("baseline", "peeking")}
        changed = [{**row, **widths, "static_width": 0.5, "updated_width": 2.0, "printed_width": 3.0} for row in rows]
        said = fig3.finding(changed)
        assert "the static cone has 0.50 of the width of the baseline and 0.50 of that of the paper's" in said
        assert "the updated cone has 2.00 of the width of the baseline and 2.00 of that of the paper's" in said
        assert fig3.in_all_windows(fig3.chosen(changed, fig3.PLAIN), "printed").width == 3.0
        seconds = {"distinct_seconds": 0.5, "one_by_one_seconds": 4.0}
        (_, cost) = fig3.costs([{**row, **seconds} for row in rows]).values()
        assert str(cost) == "0.12 (0.5 s of 4 s)"
        assert fig3.cost_range([{**row, **seconds} for row in rows], fig3.ONE_BY_ONE) == "0.12 to 0.12"
        assert report.draw(fig3.EXPERIMENT, rows, tmp_path / "fig3.png")

    def test_the_updated_cone_knows_only_the_past(self):
        rng = np.random.default_rng(1)
        series, h = np.cumsum(rng.standard_normal(300)), 5

        def bounds(series):
            held = np.lib.stride_tricks.sliding_window_view(series, h + 1)
            y_true, y_pred = held[:, 1:], np.repeat(held[:, :1], h, axis=1)
            return rolled_forward(ForecastIntervals(0.8).fit(y_true[:150], y_pred[:150]), y_true, y_pred, 160)

        changed = series.copy()
        changed[221:] += 1000.0  # what window 220 forecasts; the windows overlap, so later ones start from it
        assert_array_equal(bounds(series)[: 221 - 160], bounds(changed)[: 221 - 160])
        assert (bounds(series)[221 - 160 :] != bounds(changed)[221 - 160 :]).any()

    def test_no_data_is_refused_with_a_message(self, monkeypatch, tmp_path):
        for folder in (None, str(tmp_path)):
            monkeypatch.delenv("PIMETER_DATA", raising=False)
            if folder:
                monkeypatch.setenv("PIMETER_DATA", folder)
            with pytest.raises(
                RefusedError, match=r"PIMETER_DATA must name its folder|ge\.csv\.gz is not in the folder"
            ):
                data.general_electric()

    def test_real_prices(self, data_dir):
        prices = data.general_electric()
        assert prices.shape == (14_058, 4)
        assert_array_equal(prices[0], [0.6277, 0.6362, 0.6201, 0.6201])
        assert np.isfinite(prices).all()


class TestStack:
    """Many hidden layers at once, Hyperband, and Table 2's columns that train them."""

    how = stacked.LayerTraining(n_hidden=20, max_epochs=200, patience=50)

    def rows(self, n=300):
        X = np.random.default_rng(0).uniform(-1, 1, size=(n, 3))
        return X, np.abs(X[:, 0]) - X[:, 1]

    def stack(self, hows, losses=uci_tuning.squared, **options):
        X, y = self.rows()
        cuts = [np.random.default_rng(k).permutation(300) for k in range(len(hows))]
        members = [
            stacked.Member(k % 2, cut[:250], cut[250:], how, k)
            for k, (cut, how) in enumerate(zip(cuts, hows, strict=True))
        ]
        return stacked.Stack(np.stack([X, 2.0 * X]), np.stack([y, y]), members, losses, **options)

    @pytest.mark.parametrize("change", [{}, {"dropout": 0.05}, {"weight_decay": 0.01, "exponential": True}])
    def test_it_learns_from_many_features(self, change):
        how = dataclasses.replace(self.how, **change)
        stack = self.stack([how, how])
        stack.train(200)
        y = self.rows()[1]
        assert stack.outputs().shape == (2, 300, 1)
        assert (np.mean((stack.outputs()[:, :, 0] - y) ** 2, axis=1) < 0.05 * y.var()).all()

    def test_each_network_is_as_if_alone(self):
        """Neighbours that learn faster, diverge or stop early change nothing."""
        hows = [
            dataclasses.replace(self.how, **change)
            for change in (
                {"learning_rate": 0.03, "weight_decay": 0.1},
                {"learning_rate": 1e4, "patience": 2},
                {"spread": 0.2, "decay": 0.1},
                {"exponential": True, "max_epochs": 15},
            )
        ]
        stack = self.stack(hows)
        stack.train(40)
        for k, how in enumerate(hows):
            alone = stacked.Stack(
                stack._x.numpy(), stack._y.numpy().reshape(2, 300), [stack.members[k]], uci_tuning.squared
            )
            alone.train(40)
            assert_allclose(alone.least, stack.least[k : k + 1], rtol=1e-4)
            assert_allclose(alone.outputs()[0], stack.outputs()[k], atol=1e-3 if how.learning_rate < 1 else 1e9)

    @pytest.mark.parametrize("weight_decay", [0.0, 0.2])
    def test_it_is_what_torch_does(self, weight_decay):
        """One network beside torch's own layers and AdamW, with the same weights and batches."""
        how = dataclasses.replace(self.how, max_epochs=5, weight_decay=weight_decay)
        stack = self.stack([self.how, how])
        member = stack.members[1]
        X, y = (torch.tensor(part, dtype=torch.float32) for part in (2.0 * self.rows()[0], self.rows()[1]))
        network = torch.nn.Sequential(torch.nn.Linear(3, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1))
        with torch.no_grad():
            for own, first in zip(network.parameters(), stack._weights, strict=True):
                own.copy_(first[1].T.reshape(own.shape))
        stack.train(5)
        rng = np.random.default_rng(member.seed)
        rng.normal(size=3 * 20 + 20)  # the first weights
        optimizer = torch.optim.AdamW(network.parameters(), weight_decay=weight_decay)
        values = []
        for epoch in range(5):
            optimizer.param_groups[0]["lr"] = how.rate(epoch)
            for some in np.array_split(rng.permutation(member.rows), 2):
                optimizer.zero_grad()
                networks.squared_error(y[some, None], network(X[some])).backward()
                optimizer.step()
            values.append(networks.squared_error(y[member.stop, None], network(X[member.stop])).item())
        assert_allclose(float(stack.least[1]), min(values), rtol=1e-4)

    def test_the_best_weights_are_kept(self):
        stack = self.stack([dataclasses.replace(self.how, learning_rate=0.3, max_epochs=30, patience=5)] * 3)
        stack.train(30)
        X, y = self.rows()
        for k, member in enumerate(stack.members):
            found = stack.network(k)((member.kind + 1) * X[member.stop])[:, 0]
            assert_allclose(np.mean((found - y[member.stop]) ** 2), float(stack.least[k]), rtol=1e-4)
            assert_allclose(found, stack.outputs()[k, member.stop, 0], atol=1e-5)

    def test_some_are_kept_and_go_on(self):
        hows = [dataclasses.replace(self.how, learning_rate=rate, max_epochs=20) for rate in (0.01, 0.02, 0.05)]
        whole, part = self.stack(hows), self.stack(hows)
        whole.train(20)
        part.train(5)
        part.keep([2, 0])
        part.train(20)
        assert [member.how.learning_rate for member in part.members] == [0.05, 0.01]
        assert_allclose(part.least, whole.least[[2, 0]], rtol=1e-4)

    def test_penalties_are_each_networks_own(self):
        hows = [dataclasses.replace(self.how, penalty=penalty, max_epochs=60) for penalty in (1e-4, 1.0)]
        stack = self.stack(hows, uci_tuning.driven, start=uci_tuning.START)
        stack.train(60)
        widths = np.ptp(stack.outputs(), axis=2).mean(axis=1)
        assert widths[0] < 0.8 * widths[1]

    def test_losses_of_a_stack_are_those_of_its_networks(self):
        rng = np.random.default_rng(0)
        y, output = (torch.tensor(rng.normal(size=(3, 50, k))) for k in (1, 2))
        penalties = torch.tensor([0.01, 0.1, 1.0])
        driven = networks.quality_driven(0.9, penalty=penalties)(y, output)
        for k in range(3):
            assert_allclose(driven[k], networks.quality_driven(0.9, penalty=float(penalties[k]))(y[k], output[k]))
            for loss in (networks.squared_error, networks.pinball((0.1, 0.9))):
                assert_allclose(loss(y, output)[k], loss(y[k], output[k]))

    def test_hyperband_keeps_the_best_third(self):
        drawn = iter(range(100))
        asked = []

        def stack(trials):
            asked.append(len(trials))
            return self.stack(
                [dataclasses.replace(self.how, learning_rate=1e-4 * (t + 1), max_epochs=9) for t in trials]
            )

        def score(running):
            return np.array([-member.how.learning_rate for member in running.members])

        found = list(stacked.hyperband(lambda: next(drawn), stack, score, 3))
        assert asked == [9, 5, 3]
        assert [trial for trial, _ in found[:9]] == [5, 4, 3, 2, 1, 0, 7, 6, 8]  # 9 trials, then 3, then 1
        assert sorted(trial for trial, _ in found) == list(range(17))

    def test_rates_fall(self):
        plain = stacked.LayerTraining(learning_rate=0.1, decay=0.5)
        assert plain.rate(2) == pytest.approx(0.05)
        assert dataclasses.replace(plain, exponential=True).rate(2) == pytest.approx(0.025)

    def test_neurons_of_both_kinds(self):
        errors = np.concatenate([-np.linspace(0.01, 1.0, 100), 2.0 * np.linspace(0.01, 1.0, 100)])
        root, descent = uci_networks.NEURONS["root"], uci_networks.NEURONS["descent"]
        low, high = uci_networks.radii(errors, root, "symmetric")
        assert low == high
        assert_allclose(uci_networks.radii(errors, root, "sided"), [0.955, 1.91], atol=0.01)
        assert uci_networks.radii(errors, descent, "symmetric")[0] <= 2.0

    @pytest.mark.parametrize(
        ("columns", "n_rows"),
        [("paper", 16), ("qd", 2), ("qd-reasons", 5), ("widths", 3), ("tuning", 3), ("reasons", 40)],
    )
    def test_quick_runs(self, columns, n_rows, data_dir, tmp_path, capsys):
        folders = {"results": tmp_path / "results", "quick": tmp_path / "quick"}
        assert cli.main(["run", "table2", "--columns", columns, "--quick"], **folders) == 0
        assert "| yacht " in capsys.readouterr().out
        rows = Store(tmp_path / "quick", f"table2-{columns}-quick").rows()
        assert len(rows) == n_rows
        if columns == "paper":
            assert sum(row["chosen"] for row in rows) == 4
            assert all(row["own_picp"] > 0.9 for row in rows if row["method"].endswith("root"))

    def test_the_scripts_splits_are_those_of_the_paper(self, data_dir):
        whole = uci_reasons._split_as_the_scripts(data.official("yacht"), 2)
        for k in range(2):
            split = data.paper_split(308, k)
            cut = uci_networks.cut(uci_splits.in_units(whole, k), k, uci_networks.CALIBRATION)
            assert_array_equal(whole.test[k], split.test)
            assert_array_equal(whole.train[k][cut.rows], split.train)
            assert_array_equal(whole.train[k][cut.calibration], split.validation)

    def test_the_paper_needs_its_tuning(self, data_dir, tmp_path, monkeypatch):
        monkeypatch.setattr(uci_tuning, "RESULTS", tmp_path)
        with pytest.raises(
            RefusedError, match="yacht is not tuned yet: python -m experiments run table2 --columns tun"
        ):
            uci_networks.measure_paper(uci_tuning.Settings(), ("yacht",), np.random.default_rng())

    @pytest.mark.parametrize("method", ["protocol 1", "protocol 2", "QD"])
    def test_what_was_found_is_used(self, method, data_dir, tmp_path, monkeypatch):
        monkeypatch.setattr(uci_tuning, "RESULTS", tmp_path)
        (row,) = run(
            dataclasses.replace(uci_tuning.EXPERIMENT, units=lambda _: [("yacht", method)]),
            uci_tuning.QUICK,
            Store(tmp_path, "table2-tuning"),
        )
        assert row["n_trials"] == 3 + 2
        how = uci_tuning.tuned(uci_tuning.Settings(), "yacht", method, 100)
        assert (how.learning_rate, how.spread) == (row["learning_rate"], row["spread"])
        assert how.exponential == (method == "protocol 2")
        assert bool(how.weight_decay) == (method == "protocol 2")
        assert bool(how.penalty) == (method == "QD")
