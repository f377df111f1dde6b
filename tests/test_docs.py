"""The documentation says what is true: links resolve, commands parse, code runs, generated pages are current."""

import doctest
import importlib
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import unquote

import pytest
import typer

import recrawl
from patience import patience
from recrawl.policies import ALL as POLICIES
from recrawl.sources import ALL as SOURCES

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
GENERATED = {
    "commands.md",
    "policies.md",
    "api.md",
    "crawl.md",
    "results/data.md",
}  # data.md: by benchmarks.results.data
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BLOCK = re.compile(r"(?P<mark><!-- run -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def title(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    language: str
    text: str
    runs: bool


def blocks(path: Path, *languages: str) -> list[Block]:
    found = (Block(match["language"], match["text"], bool(match["mark"])) for match in BLOCK.finditer(content(path)))
    return [block for block in found if block.language in languages]


@cache
def content(path: Path) -> str:
    """A page with what it includes."""
    text = path.read_text("utf-8")
    return re.sub(
        r"^<!-- include: (\S+) -->$", lambda match: (ROOT / match[1]).read_text("utf-8"), text, flags=re.MULTILINE
    )


def load(name: str) -> Any:
    """One of the scripts in docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- links -------------------------------------------------------------------------------------------------------------


def prose(path: Path) -> str:
    return BLOCK.sub("", content(path))


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors of a page's headings, as Python-Markdown makes them."""
    headings = re.findall(r"^#+ (.+?)\s*$", prose(path), re.MULTILINE)
    return frozenset(slug(re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading)) for heading in headings)


def slug(heading: str) -> str:
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def links(path: Path) -> Iterator[str]:
    for target in re.findall(r"\]\(([^)\s]+)\)", INLINE.sub("", prose(path))):
        if not re.match(r"[a-z]+:", target):
            yield unquote(target)


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=title)
def test_every_link_and_anchor_resolves(path: Path) -> None:
    broken = []
    for link in links(path):
        target, _, anchor = link.partition("#")
        page = (path.parent / target).resolve() if target else path
        if not page.exists() or (anchor and page.suffix == ".md" and anchor not in anchors(page)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [title(page) for page in PAGES if page.relative_to(DOCS).as_posix() not in navigation] == []


# -- generated pages ---------------------------------------------------------------------------------------------------


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, "-m", "docs.make", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_help_of_import_names_every_format() -> None:
    page = (DOCS / "commands.md").read_text("utf-8")
    assert {source.name for source in SOURCES if source.name not in page} == set()


def test_every_policy_says_when_to_use_it() -> None:
    assert set(load("make").WHEN) == {policy.name for policy in POLICIES}


def test_the_api_page_has_every_public_name() -> None:
    make = load("make")
    listed = {name for _, names in make.API.values() for name in names}
    modules = {name for name in recrawl.__all__ if not callable(getattr(recrawl, name))}
    assert listed == set(recrawl.__all__) - modules
    assert [name for name in listed if make.located(name) is None] == []


@pytest.mark.parametrize("name", ["make", "doctests"])
def test_the_examples_in_the_scripts_hold(name: str) -> None:
    if name == "doctests":
        pytest.importorskip("griffe")
    assert doctest.testmod(load(name)).failed == 0


# -- commands ----------------------------------------------------------------------------------------------------------

OPERATOR = re.compile(r"[|&;<>()]+")


def written(block: Block) -> Iterator[str]:
    """The lines of a block that a shell would get."""
    text = block.text.replace("\\\n", " ")
    for line in text.splitlines():
        if block.language != "console":
            yield line
        elif line.startswith("$ "):
            yield line[2:]


def calls(line: str) -> Iterator[list[str]]:
    """The arguments of every call of recrawl in a line of a shell script."""
    words = shlex.shlex(re.sub(r"\$\([^)]*\)", "https://example.org/", line), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    part: list[str] = []
    for word in [*words, ";"]:
        if not OPERATOR.fullmatch(word):
            part.append(word)
            continue
        if word.startswith(">") and part and part[-1].isdigit():  # 2> FILE
            part.pop()
        while part and re.match(r"\w+=", part[0]):
            part.pop(0)
        if part and Path(part[0]).name == "recrawl":
            yield part[1:]
        part = []


def command(words: list[str]) -> tuple[Any, list[str]]:
    """The command that is called, and its arguments."""
    found: Any = typer.main.get_command(importlib.import_module("recrawl.cli").app)
    while words and getattr(found, "commands", None) and not words[0].startswith("-"):
        assert words[0] in found.commands, f"there is no command {words[0]!r}"
        found, words = found.commands[words[0]], words[1:]
    return found, words


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=title)
def test_every_command_in_a_block_can_be_called_so(path: Path) -> None:
    for block in blocks(path, "", "sh", "console"):
        for line in written(block):
            for words in calls(line):
                found, arguments = command(words)
                if arguments not in (["--help"], ["--version"]):
                    found.make_context(found.name, arguments)  # raises for an option or a value that it does not take


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md"], ids=title)
def test_every_command_in_the_text_exists(path: Path) -> None:
    for code in INLINE.findall(prose(path)):
        if not code.startswith("recrawl "):
            continue
        words = code.replace("…", "").replace("'", "").replace('"', "").split()[1:]
        if words and words[0].rstrip(",").isalpha():
            found, arguments = command(words)
            options = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
            unknown = {word for word in arguments if re.match(r"--?[a-z]", word)} - options - {"--help"}
            assert unknown == set(), code


# -- code --------------------------------------------------------------------------------------------------------------

ENTRY_POINTS = {"recrawl.policies", "recrawl.sources", "recrawl.learners"}
DOTTED = re.compile(r"(?<![\w./-])recrawl(?:\.\w+)+(?!\.?\w|[-/])")


@pytest.mark.parametrize("path", PAGES, ids=title)
def test_every_name_of_the_package_exists(path: Path) -> None:
    names = {name for name in DOTTED.findall(content(path)) if not name.endswith((".json", ".toml"))}
    assert {name for name in names - ENTRY_POINTS if not exists(name)} == set()


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    module, rest = name, ""
    while module:
        try:
            found: Any = importlib.import_module(module)
        except ImportError:
            module, _, last = module.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
            continue
        for part in filter(None, rest.split(".")):
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_every_part_of_the_default_policy_that_is_described_exists() -> None:
    folder = Path(importlib.import_module("recrawl.policies.harvest").__path__[0])
    named = set(re.findall(r"`(\w+\.py)`", content(DOCS / "harvest.md")))
    assert named
    assert {name for name in named if not (folder / name).exists()} == set()


@pytest.mark.parametrize("path", [page for page in PAGES if blocks(page, "python")], ids=title)
def test_every_block_of_python_compiles(path: Path) -> None:
    for block in blocks(path, "python"):
        compile(block.text, title(path), "exec")


@pytest.fixture(scope="module")
def small_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "history"
    make = ["synth", "--pages", "40", "--history", str(folder)]
    subprocess.run([sys.executable, "-m", "recrawl.cli", *make], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    "path", [page for page in PAGES if any(block.runs for block in blocks(page, "python"))], ids=title
)
def test_python_that_is_marked_runs(
    path: Path, small_history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "history").symlink_to(small_history)
    monkeypatch.chdir(tmp_path)
    page = ModuleType("page_of_the_docs")  # what a page defines can be pickled, as if it were in a module
    monkeypatch.setitem(sys.modules, page.__name__, page)
    for block in blocks(path, "python"):
        if block.runs:
            exec(compile(block.text, title(path), "exec"), page.__dict__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [page for page in PAGES if any(block.runs for block in blocks(page, "console"))], ids=title
)
def test_commands_that_are_marked_run_and_print_what_is_shown(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment.pop("RECRAWL_HISTORY", None)
    marked = "".join(block.text for block in blocks(path, "console") if block.runs)
    for step in re.split(r"^\$ ", marked, flags=re.MULTILINE)[1:]:
        line, _, shown = step.partition("\n")
        done = subprocess.run(line, shell=True, capture_output=True, text=True, env=environment, timeout=patience(120))
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        agrees = not shown or doctest.OutputChecker().check_output(shown, done.stdout, FLAGS)
        assert agrees, f"{line}\nshould print\n{shown}\nbut printed\n{done.stdout}"


# -- English -----------------------------------------------------------------------------------------------------------

AVOIDED = re.compile(
    r"\b(told|tells|stands|anew|so many|nobody|whoever|fores(?:ee|aw)\w*|foret(?:ell|old)\w*)\b", re.IGNORECASE
)


@pytest.mark.parametrize(
    "path", [page for page in PAGES if page.relative_to(DOCS).as_posix() not in GENERATED], ids=title
)
def test_pages_are_in_plain_english(path: Path) -> None:
    assert AVOIDED.findall(path.read_text("utf-8")) == []


# -- the site ----------------------------------------------------------------------------------------------------------


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(
        build, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    )
    assert done.returncode == 0, done.stderr
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//")
    built = list(tmp_path.rglob("*.html"))
    assert len(built) >= len(PAGES)
    assert [page.name for page in built if loaded.search(page.read_text("utf-8"))] == []
