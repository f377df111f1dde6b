"""Where real data lies: beside the repository, not in it."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
FIXTURES = DATA / "fixtures"
MISSING = f"the shared data is not at {DATA}"


def fixture_files(*endings: str) -> list[Path]:
    """The sample files whose names end so; none where there is no shared data."""
    return [path for path in sorted(FIXTURES.rglob("*")) if path.is_file() and path.name.endswith(endings or ("",))]
