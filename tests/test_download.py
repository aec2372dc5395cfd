"""The loader of the regression datasets, on a server of its own with small files of the same formats."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import http.server
import io
import threading
import zipfile

import numpy as np
import pytest

from experiments import __main__ as cli
from experiments import data, download, labelled
from experiments.protocol import RefusedError

pytestmark = pytest.mark.slow
N = 40


def table(name):
    """Small numbers in the columns of a dataset as its home has them."""
    rng = np.random.default_rng(len(name))
    return np.round(rng.normal(10.0, 3.0, size=(N, download.SOURCES[name].n_columns)), 3)


def lines(values, separator):
    return "\n".join(separator.join(f"{x:g}" for x in row) for row in values) + "\n"


def boston(values):
    """A preface in words, then rows of eleven and three numbers."""
    rows = "".join(f" {lines([row[:11]], '  ')}  {lines([row[11:]], '   ')}" for row in values)
    return f" The Boston house-price data of Harrison, D. and Rubinfeld, D.L.\n 1978.   Used in Belsley.\n\n{rows}"


def names(n):
    return [f"X{i}" for i in range(n)]


FORMATS = {
    "yacht": lambda t: f"{lines(t, ' ')}\n",
    "boston": boston,
    "energy": lambda t: ",".join(names(10)) + "\n" + lines(t, ","),
    "concrete": lambda t: '"Cement","Fly Ash, dry"\n' + lines(t, ","),
    "wine-red": lambda t: '"fixed acidity";"quality"\n' + lines(t, ";"),
    "kin8nm": lambda t: "% kin8nm\n@relation kin8nm\n@attribute theta1 real\n@data\n" + lines(t, ","),
    "power-plant": lambda t: "AT,V,AP,RH,PE\r\n" + lines(t, ",").replace("\n", "\r\n"),
    "naval": lambda t: lines(t, "   "),
    "protein": lambda t: ",".join(["RMSD", *names(9)]) + "\n" + lines(t, ","),
    "song-year": lambda t: lines(t, ","),
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A server with all datasets; where they are, and the checks that belong to them."""
    public = tmp_path / "public"
    public.mkdir()
    known = ["dataset,rows,column,mean,sd,drift"]
    for name, source in download.SOURCES.items():
        text = FORMATS[name](table(name))
        if source.member:
            packed = io.BytesIO()
            with zipfile.ZipFile(packed, "w") as archive:
                archive.writestr("Readme.txt", "words")
                archive.writestr(f"folder/{source.member}", text)
            (public / name).write_bytes(packed.getvalue())
        else:
            (public / name).write_text(text, newline="")
        if name != "song-year":
            arranged = download._arranged(table(name), source)
            known += [f"{name},{N},{i},{a},{b},{c}" for i, (a, b, c) in enumerate(download.described(arranged))]
    (tmp_path / "checks.csv").write_text("\n".join(known))
    monkeypatch.setattr(download, "CHECKS", tmp_path / "checks.csv")
    monkeypatch.setattr(download, "N_ROWS", {"song-year": N})
    monkeypatch.setattr(download, "OWN_SPLIT", {"song-year": 30})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=public))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name, source in download.SOURCES.items():
        address = f"http://127.0.0.1:{server.server_port}/{name}"
        monkeypatch.setitem(download.SOURCES, name, dataclasses.replace(source, url=address))
    yield public
    server.shutdown()
    server.server_close()


def test_all_formats_arrive(home, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "data"
    assert cli.main(["download", str(folder), "--datasets", ",".join(download.SOURCES)]) == 0
    assert capsys.readouterr().out.count("downloaded and checked") == 10
    monkeypatch.setenv("PIMETER_DATA", str(folder))
    for name, source in download.SOURCES.items():
        X, y, train, test = data.official(name)
        given = table(name)
        assert y.tolist() == given[:, source.target].tolist()
        assert X.shape[1] == source.n_columns - 1 - len(source.left_out) - source.other_target
        assert X[:, 0].tolist() == given[:, 1 if source.target == 0 else 0].tolist()
        assert len(train) == {"song-year": 1, "protein": 5}.get(name, 20)
        assert sorted([*train[0], *test[0]]) == list(range(N))
    assert data.regression("naval")[1].tolist() == table("naval")[:, 17].tolist()
    assert not [path for path in folder.rglob("*") if path.is_file() and path.suffix not in {".gz", ".npz"}]


def test_the_splits_are_those_of_the_benchmark(data_dir):
    for name in ("yacht", "concrete", "wine-red"):
        _, y, train, test = data.official(name)
        made = download.benchmark_splits(name, len(y))
        assert made["train"].tolist() == train.tolist()
        assert made["test"].tolist() == test.tolist()


def test_the_known_tables_pass(data_dir):
    for name in ("yacht", "energy", "naval"):
        download.check(name, data._table(name)[1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("\n", "\n1 2 3 4 5 6 7\n", 1), "has 40 rows and 7 columns"),
        (lambda text: "\n".join(reversed(text.splitlines())), "correlation with the row number of column"),
        (lambda text: text.replace(text.split()[0], "999", 1), "of column 0 is not the known one"),
        (lambda text: text + "7\n", "281 numbers are no table of 7 columns"),
        (lambda text: "<html>not here any more</html>", "0 numbers are no table"),
    ],
)
def test_what_is_not_the_known_table_is_refused(home, tmp_path, change, said, capsys):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("yacht_hydrodynamics.data", change(FORMATS["yacht"](table("yacht"))))
    (home / "yacht").write_bytes(packed.getvalue())
    assert cli.main(["download", str(tmp_path / "data"), "--datasets", "yacht"]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_trouble_on_the_way(home, tmp_path):
    (home / "naval").write_bytes((home / "naval").read_bytes()[:99])
    (home / "yacht").write_bytes((home / "wine-red").read_bytes())
    (home / "boston").unlink()
    for name, said in (
        ("naval", "not a zip"),
        ("yacht", "has no file yacht_hyd"),
        ("boston", "404"),
        ("x", "no dataset"),
    ):
        with pytest.raises(RefusedError, match=said):
            download.download([name], tmp_path / "data")
    assert not (tmp_path / "data").exists()
    download.N_ROWS["song-year"] = N + 1
    with pytest.raises(RefusedError, match="song-year has 41 rows; what came has 40"):
        download.download(["song-year"], tmp_path / "data")


class TestLabelled:
    """Datasets with labels, in the forms of their homes."""

    @staticmethod
    def fetch(monkeypatch, text):
        monkeypatch.setattr(labelled, "_fetched", lambda *_: text)
        monkeypatch.setattr(labelled, "check", lambda *_: None)

    def test_arff_with_a_label(self, tmp_path, monkeypatch):
        self.fetch(
            monkeypatch, "% words\n@relation x\n@attribute a real\n@data\n1,2.5,tested_negative\n?,4,tested_positive\n"
        )
        labelled.download("pima_diabetes", tmp_path)
        text = gzip.decompress((tmp_path / "classification" / "pima_diabetes.csv.gz").read_bytes()).decode()
        assert text == "f0,f1,target\n1,2.5,1\n,4,0\n"

    def test_names_in_front_and_a_title(self, tmp_path, monkeypatch):
        self.fetch(monkeypatch, "molecule,conformation,f1,f2,class\nM1,c1,4,5,1.\nM2,c2,6,7,0.\n")
        labelled.download("musk1", tmp_path)
        text = gzip.decompress((tmp_path / "classification" / "musk1.csv.gz").read_bytes()).decode()
        assert text == "f0,f1,target\n4,5,0\n6,7,1\n"

    def test_adult_keeps_words_and_is_counted(self, tmp_path, monkeypatch):
        row = "39, State-gov, 77516, Bachelors, 13, Never-married, ?, Own-child, White, Male, 2174, 0, 40, Cuba, "
        self.fetch(monkeypatch, f"|1x3 Cross validator\n{row}<=50K.\n{row}>50K.\n")
        with pytest.raises(RefusedError, match=r"adult-test has .* what came has \(2, 1\)"):
            labelled.download("adult-test", tmp_path)
        monkeypatch.setitem(labelled.ADULT_ROWS, "adult-test", (2, 1))
        labelled.download("adult-test", tmp_path)
        lines = gzip.decompress((tmp_path / "classification" / "adult-test.csv.gz").read_bytes()).decode().splitlines()
        assert lines[1] == "39,State-gov,77516,Bachelors,13,Never-married,,Own-child,White,Male,2174,0,40,Cuba,1"

    def test_no_table_is_refused(self, tmp_path, monkeypatch):
        self.fetch(monkeypatch, "<html>moved</html>")
        with pytest.raises(RefusedError, match="no table of features and labels"):
            labelled.download("sonar", tmp_path)

    def test_prices_are_arranged_or_asked_for(self, tmp_path, monkeypatch, capsys):
        assert cli.main(["download", str(tmp_path), "--datasets", "ge"]) == 2
        assert "Kaggle" in capsys.readouterr().err
        (tmp_path / "time_series").mkdir()
        (tmp_path / "time_series" / "ge.us.txt").write_text(
            "Date,Open,High,Low,Close,Volume,OpenInt\n1962-01-02,1,1,1,1,2,0\n"
        )
        with pytest.raises(RefusedError, match="1 days"):
            labelled.download("ge", tmp_path)
        monkeypatch.setattr(labelled, "N_DAYS", 1)
        labelled.download("ge", tmp_path)
        assert (tmp_path / "time_series" / "ge.csv.gz").exists()

    @pytest.mark.parametrize("name", ["sonar", "heart_disease", "mammography"])
    def test_checks_are_those_of_the_files(self, name, data_dir):
        table = np.genfromtxt(data_dir / "classification" / f"{name}.csv.gz", delimiter=",", skip_header=1)
        download.check(name, np.nan_to_num(table))
        with pytest.raises(RefusedError):
            download.check(name, np.nan_to_num(table[::-1]))
