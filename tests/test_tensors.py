"""Tensors: the numbers of NumPy arrays, on the tensor's device, with gradients."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pimeter as pm

torch = pytest.importorskip("torch")

LEVELS = [0.05, 0.5, 0.9, 0.99]
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that torch can use")),
]
on_each_device = pytest.mark.parametrize("device", DEVICES)


def draw(distribution: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: 100.0 + 3.0 * rng.standard_normal(shape),
        "cauchy": lambda: rng.standard_cauchy(shape),
        "tied": lambda: rng.integers(0, 6, shape).astype(float),
        "two humps": lambda: rng.choice([-10.0, 10.0], shape) + rng.standard_normal(shape),
    }[distribution]()


def assert_same(x: np.ndarray, device: str, q: object = LEVELS, weights: np.ndarray | None = None, **options: object):
    """Of what a quantile can know: of its own size, or of the sample's middle half; between two humps a digit less."""
    counts = None if weights is None else torch.tensor(weights, device=device)
    ours = pm.quantile(torch.tensor(x, device=device), q, -1, weights=counts, **options).cpu().numpy()
    exact = x.astype(np.float64)
    expected = pm.quantile(exact, q, -1, weights=weights, **options)
    tolerance = 1e-9 if x.dtype == np.float64 else 1e-5
    between = 10.0 if x.min() < -8.0 and x.max() > 8.0 and np.abs(x).max() < 20.0 else 1.0
    spread = np.subtract(*np.quantile(exact, [0.75, 0.25], axis=-1))
    assert_allclose(ours, expected, rtol=tolerance, atol=between * tolerance * float(np.max(spread)))


@on_each_device
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("distribution", ["normal", "cauchy", "tied", "two humps"])
class TestSameNumbers:
    @pytest.mark.parametrize("n", [1, 2, 3, 40, 1000, 3000, 40_000])
    def test_by_the_rule(self, device, dtype, distribution, n):
        assert_same(draw(distribution, (3, n)).astype(dtype), device)

    @pytest.mark.parametrize("shape", [(3, 2), (3, 1000), (3, 30_000), (130, 9000)])
    def test_with_a_bandwidth(self, device, dtype, distribution, shape):
        assert_same(draw(distribution, shape).astype(dtype), device, 0.9, beta=1.0)

    @pytest.mark.parametrize("options", [{}, {"beta": 1.0}])
    def test_weights(self, device, dtype, distribution, options):
        weights = np.random.default_rng(1).choice([0.0, 0.25, 1.0, 2.0, 3.5], (3, 60))
        assert_same(draw(distribution, (3, 60)).astype(dtype), device, weights=weights, **options)


def test_weights_need_not_be_a_tensor():
    found = pm.quantile(torch.tensor([1.0, 2.0, 4.0]), 0.7, weights=[1, 2, 1])
    assert_allclose(found, pm.quantile(np.array([1.0, 2.0, 4.0]), 0.7, weights=[1, 2, 1]), rtol=1e-5)


@on_each_device
@pytest.mark.parametrize("n", [203, 3003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_few_errors_a_million_times_farther_away(device, dtype, n):
    x = np.random.default_rng(2).standard_normal((2, n))
    x[:, :3] = 1e6
    assert_same(x.astype(dtype), device, [0.1, 0.5, 0.97])


@on_each_device
@pytest.mark.parametrize("shape", [(1, 2**22 + 3), (130, 30_000)])
def test_long_rows_in_any_order(device, shape):
    x = draw("normal", shape).astype(np.float32)
    assert_same(x, device, 0.95)
    assert_same(np.sort(x), device, 0.95)
    x[:, ::3] += 50.0  # a pattern
    assert_same(x, device, 0.95)


@on_each_device
def test_next_to_no_spread(device):
    x = np.concatenate([1e-120 * np.arange(50.0), [1e5] * 3])
    expected = pm.quantile(x, LEVELS)
    assert_allclose(pm.quantile(torch.tensor(x, device=device), LEVELS).cpu().numpy(), expected, rtol=1e-9)


@on_each_device
class TestCallingConvention:
    @pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2)])
    @pytest.mark.parametrize("keepdims", [False, True])
    @pytest.mark.parametrize("q", [0.3, [0.1, 0.9], [[0.2], [0.4]], 0.0, 1.0])
    def test_axes_and_shapes(self, device, axis, keepdims, q):
        x = np.random.default_rng(2).standard_normal((4, 5, 6))
        ours = pm.quantile(torch.tensor(x, device=device), q, axis, keepdims=keepdims)
        expected = np.asarray(pm.quantile(x, q, axis, keepdims=keepdims))
        assert ours.shape == expected.shape
        assert ours.device.type == device
        assert_allclose(ours.cpu().numpy(), expected, rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
    def test_width_in_is_width_out(self, device, dtype):
        x = torch.randn(3, 200, device=device).to(dtype)
        for beta in ("auto", 3.0):
            found = pm.quantile(x, 0.9, 1, beta=beta)
            assert found.dtype == dtype
            expected = pm.quantile(x.double(), 0.9, 1, beta=beta)
            assert torch.allclose(found.double(), expected, rtol=2.0 * torch.finfo(dtype).eps + 1e-6)

    def test_levels_as_a_tensor(self, device):
        x = torch.randn(50, device=device)
        levels = torch.tensor([0.2, 0.7], device=device, dtype=torch.float64)
        assert torch.equal(pm.quantile(x, levels), pm.quantile(x, [0.2, 0.7]))

    @pytest.mark.parametrize("n", [20, 3000, 20_000])
    @pytest.mark.parametrize("beta", ["auto", 3.0])
    def test_missing_and_infinite_values(self, device, n, beta):
        x = np.random.default_rng(3).standard_normal((4, n))
        x[0, 3], x[1, 5], x[2, 7] = np.nan, np.inf, -np.inf
        ours = pm.quantile(torch.tensor(x, device=device), [0.0, 0.4, 1.0], 1, beta=beta).cpu().numpy()
        assert_allclose(ours, pm.quantile(x, [0.0, 0.4, 1.0], 1, beta=beta), rtol=1e-9)

    @pytest.mark.parametrize("beta", ["auto", 3.0])
    def test_reflect(self, device, beta):
        assert_same(np.abs(draw("cauchy", (3, 70))), device, reflect=True, beta=beta)

    def test_more_values_than_torch_takes(self, device):
        x = torch.rand(2**24 + 8, device=device)
        with pytest.raises(RuntimeError, match="too large"):
            torch.quantile(x, 0.5)
        assert abs(float(pm.quantile(x, 0.9)) - 0.9) < 1e-3  # 14 standard errors


class TestBadInput:
    def test_integers(self):
        with pytest.raises(TypeError, match=r"torch.int64; .* a.double\(\)"):
            pm.quantile(torch.arange(5), 0.5)

    def test_nothing(self):
        with pytest.raises(ValueError, match="no values along axis 1"):
            pm.quantile(torch.ones(3, 0), 0.5, 1)

    @on_each_device
    def test_negative_weights(self, device):
        x = torch.ones(4, device=device)
        with pytest.raises(ValueError, match="weights are counts"):
            pm.quantile(x, 0.5, weights=torch.tensor([1.0, -1.0, 1.0, 1.0], device=device))
        with pytest.raises(ValueError, match="weights are 0 for a whole sample"):
            pm.quantile(x, 0.5, weights=torch.zeros(4, device=device))

    def test_weights_of_another_shape(self):
        with pytest.raises(ValueError, match=r"weights have shape \(3,\)"):
            pm.quantile(torch.ones(2, 4), 0.5, 1, weights=torch.ones(3))

    def test_mixed_devices(self):
        with pytest.raises(ValueError, match="a is on cpu, weights are on meta"):
            pm.quantile(torch.ones(4), 0.5, weights=torch.ones(4, device="meta"))

    def test_weights_with_a_gradient(self):
        with pytest.raises(ValueError, match="carry no gradient"):
            pm.quantile(torch.ones(4), 0.5, weights=torch.ones(4, requires_grad=True))

    @on_each_device
    def test_negative_values_to_reflect(self, device):
        with pytest.raises(ValueError, match="absolute errors"):
            pm.quantile(torch.tensor([1.0, -1.0, 2.0], device=device), 0.5, reflect=True)


def leaf(shape: tuple[int, ...], seed: int = 0, device: str = "cpu") -> object:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator).to(device).requires_grad_()


WEIGHTS = torch.tensor(np.random.default_rng(4).choice([0.0, 0.5, 1.0, 2.0], (3, 40)))


@pytest.mark.parametrize("beta", ["auto", 3.0])
class TestGradients:
    @on_each_device
    @pytest.mark.parametrize("q", [0.5, [0.03, 0.3, 0.9, 0.99], [0.0, 0.6, 1.0]])
    @pytest.mark.parametrize("weights", [None, WEIGHTS[0], WEIGHTS], ids=["plain", "shared weights", "weights"])
    def test_of_columns(self, device, beta, q, weights):
        own = None if weights is None else weights.to(device)
        x = leaf((3, 40), device=device)
        assert torch.autograd.gradcheck(lambda x: pm.quantile(x, q, 1, weights=own, beta=beta), x)

    @pytest.mark.parametrize("m", [1, 2, 5, 200, 2100])
    def test_of_one_sample(self, beta, m):
        x = leaf((m,), 1)
        assert torch.autograd.gradcheck(lambda x: pm.quantile(x, 0.9, beta=beta), x, fast_mode=m > 200)

    def test_of_absolute_errors(self, beta):
        x = leaf((2, 30), 2)
        assert torch.autograd.gradcheck(lambda x: pm.quantile(x.abs(), [0.1, 0.8], 1, reflect=True, beta=beta), x)

    def test_it_moves_with_the_errors_and_by_the_rule_with_their_unit(self, beta):
        x = leaf((5, 80), 3)
        w = pm.quantile(x, 0.8, 1, beta=beta)
        (gradient,) = torch.autograd.grad(w.sum(), x)
        assert_allclose(gradient.sum(1).numpy(), 1.0, rtol=1e-12)
        if beta == "auto":
            assert_allclose((x * gradient).sum(1).detach().numpy(), w.detach().numpy(), rtol=1e-12)

    def test_far_from_one_and_in_odd_rows(self, beta):
        x = leaf((4, 30), 4).detach() * 1e-160
        x[1] *= 1e300
        x[2, 3], x[3, 4] = np.nan, np.inf
        x.requires_grad_()
        w = pm.quantile(x, 0.7, 1, beta=beta)
        (gradient,) = torch.autograd.grad(w.sum(), x)
        assert_allclose(gradient[[0, 1, 3]].sum(1).numpy(), 1.0, rtol=1e-9)
        assert bool(torch.isnan(gradient[2]).all()) or not bool(gradient[2].any())

    @pytest.mark.parametrize("weights", [None, WEIGHTS[0]], ids=["plain", "weights"])
    def test_vmap(self, beta, weights):
        x = leaf((3, 40), 5)

        def one(row):
            return pm.quantile(row, 0.9, weights=weights, beta=beta)

        expected = pm.quantile(x, 0.9, 1, weights=weights, beta=beta)
        (gradient,) = torch.autograd.grad(expected.sum(), x)
        rows = x.detach()
        assert torch.equal(torch.func.vmap(one)(rows), expected)
        assert_allclose(torch.func.vmap(torch.func.grad(one))(rows).numpy(), gradient.numpy(), rtol=1e-12)
        whole = torch.func.grad(lambda rows: torch.func.vmap(one)(rows).sum())(rows)
        assert_allclose(whole.numpy(), gradient.numpy(), rtol=1e-12)

    def test_compile(self, beta):
        x = leaf((3, 40), 6)
        expected = pm.quantile(x, 0.9, 1, beta=beta)
        (gradient,) = torch.autograd.grad(expected.sum(), x)
        # What inductor makes of plain operations is torch's matter; that one graph holds all of it is ours.
        compiled = torch.compile(lambda x: pm.quantile(x, 0.9, 1, beta=beta), fullgraph=True, backend="aot_eager")
        ours = compiled(x)
        assert torch.equal(ours, expected)
        assert_array_equal(torch.autograd.grad(ours.sum(), x)[0].numpy(), gradient.numpy())


def test_batches_of_weights_under_vmap():
    x = leaf((3, 40), 7).detach()
    found = torch.func.vmap(lambda row, own: pm.quantile(row, 0.9, weights=own))(x, WEIGHTS)
    assert torch.equal(found, pm.quantile(x, 0.9, 1, weights=WEIGHTS))


def test_nothing_but_numpy_and_torch_is_loaded():
    code = (
        "import torch, pimeter as pm; "
        "x = torch.linspace(0, 1, 50, dtype=torch.float64, requires_grad=True); pm.quantile(x, 0.9).backward(); "
        "print([name for name in ('scipy', 'sklearn', 'pandas', 'triton') if name in sys.modules and "
        "name not in before])"
    )
    code = "import sys, torch; before = set(sys.modules); " + code
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
