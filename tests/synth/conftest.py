"""What a history would see of a made-up web, measured from its tables with plain Python sets."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from recrawl.synth import SynthSettings, batches


@dataclass(frozen=True)
class Measured:
    tables: dict[str, pa.Table]
    url: list[str]
    status: NDArray[np.int64]  # all arrays [page, round]
    text: NDArray[np.float64]
    sets: list[list[tuple[frozenset[int], frozenset[int]] | None]]
    n_new: NDArray[np.float64]  # [page, round, internal or external]; NaN: undefined

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Pages seen in all rounds."""
        return np.isin(self.status, (200, 304)).all(axis=1)


def measure(settings: SynthSettings) -> Measured:
    made = list(batches(settings))
    tables = {name: pa.concat_tables([batch[name] for batch in made]) for name in made[0]}
    sets = {
        digest: (frozenset(links[:n]), frozenset(links[n:]))
        for digest, n, links in zip(
            *(tables["link_sets"][name].to_pylist() for name in ("digest", "n_internal", "links")), strict=True
        )
    }
    visits = tables["visits"].sort_by([("page", "ascending"), ("at", "ascending")])
    shape = (settings.pages, settings.rounds)
    status = visits["status"].to_numpy().reshape(shape)
    links = np.array(visits["links"].to_pylist(), object).reshape(shape)
    text = np.array([np.nan if t is None else t for t in visits["text"].to_pylist()], float).reshape(shape)
    urls = dict(zip(tables["urls"]["id"].to_pylist(), tables["urls"]["url"].to_pylist(), strict=True))
    url = [urls[page] for page in visits["page"].to_pylist()[:: settings.rounds]]
    seen = [[sets.get(digest) for digest in row] for row in links]
    return Measured(tables, url, status, text, seen, _new_links(seen, status))


def _new_links(seen: list, status: NDArray[np.int64]) -> NDArray[np.float64]:
    n_new = np.full((*status.shape, 2), np.nan)
    for page, row in enumerate(seen):
        last = None
        for number, links in enumerate(row):
            if status[page, number] == 304:
                n_new[page, number] = 0
            elif links is not None:
                if last is not None:
                    n_new[page, number] = len(links[0] - last[0]), len(links[1] - last[1])
                last = links
    return n_new


@pytest.fixture(scope="session")
def web() -> Measured:
    """A moderate web whose statistics are checked."""
    return measure(SynthSettings(pages=30_000, seed=1, terms=False))
