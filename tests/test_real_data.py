"""What recrawl counts on real collections, beside what an independent simple program counted on the plain URLs.

docs/results/data.md explains the differences: they are all due to spellings of URLs that recrawl takes for one page.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from patience import patience
from recrawl.history import History, summary

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(not (DATA / "visits.py").exists(), reason=f"the real collections are not at {DATA}")


@pytest.mark.parametrize(
    ("corpus", "compared", "previous", "page", "anywhere"),
    [
        # The same program over larger collections.
        pytest.param(
            "news_hourly_2025-03", 83_478, (194_335, 37_276), (167_677, 35_506), 83_896, marks=pytest.mark.slow
        ),
        pytest.param(
            "openbsd_www --every 7d --from 2005-01-01 --to 2010-01-01",
            723_116,
            (32_255, 9_521),
            (30_057, 9_121),
            6_611,
            marks=pytest.mark.slow,
        ),
        (
            "author_homepages --every 7d --from 2017-01-01 --to 2026-07-01",
            108_096,
            (3_525, 1_102),
            (3_381, 1_035),
            2_642,
        ),
    ],
)
def test_new_links_agree_with_an_independent_program(
    corpus: str, compared: int, previous: tuple[int, int], page: tuple[int, int], anywhere: int, tmp_path: Path
) -> None:
    python, folder = sys.executable, tmp_path / "h"
    command = f"{python} {DATA / 'visits.py'} {corpus} --no-terms | {python} -m recrawl.cli import - --workers 1 --history {folder}"
    subprocess.run(command, shell=True, check=True, capture_output=True, timeout=patience(400))
    found = summary(History.open(folder))
    assert found.visits_compared == compared
    for meaning, expected in (("previous", previous), ("page", page)):
        counted = (found.new_links[meaning], found.visits_with_new_links[meaning])
        assert counted == pytest.approx(expected, rel=0.005)
    assert found.new_links["anywhere"] == pytest.approx(anywhere, rel=0.005)
