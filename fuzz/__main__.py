"""Fuzz all targets for some minutes, or repeat one finding."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fuzz.fuzzer import Current, Done, Finding, work
from fuzz.target import Target
from fuzz.targets import targets


def main() -> int:
    """Exit 1 where anything was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    parser.add_argument(
        "--seed", type=int, default=0, help="the same seed gives the same inputs, as far as the time reaches"
    )
    parser.add_argument("--target", action="append", default=[], help="only this one; repeatable")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="where findings are saved")
    parser.add_argument(
        "files", nargs="*", type=Path, help="inputs to run once, with --target; what they raise is shown"
    )
    options = parser.parse_args()
    chosen = _chosen(options.target)
    if options.files:
        return _repeat(chosen, options.files)
    names = [target.name for target in chosen]
    print(f"{len(names)} targets, {options.minutes:g} minutes, seed {options.seed}")
    found = 0
    for done in _all(names, options.seed, options.minutes * 60 / len(names), options.out):
        _show(done, options.out)
        found += len(done.findings)
    print(f"{found} findings" + (f", saved in {options.out}" if found else ""))
    return 1 if found else 0


def _chosen(names: Sequence[str]) -> list[Target]:
    known = {target.name: target for target in targets()}
    for name in names:
        if name not in known:
            sys.exit(f"no target {name!r}; known: {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def _repeat(chosen: list[Target], files: list[Path]) -> int:
    """Run inputs once; a finding is a traceback."""
    if len(chosen) != 1:
        sys.exit("name the target of these files with --target")
    for path in files:
        try:
            chosen[0].run(path.read_bytes())
            print(f"{path}: read")
        except chosen[0].errors as error:
            print(f"{path}: refused, {type(error).__name__}: {error}")
    return 0


def _all(names: list[str], seed: int, seconds: float, folder: Path) -> Iterator[Done]:
    """What became of every target; a target that ends the process is a finding, and the others go on in a new one."""
    os.environ["PYTHONHASHSEED"] = "0"  # of the processes started: sets in the same order every time
    spawn = multiprocessing.get_context("spawn")
    left = list(names)
    while left:
        receiver, sender = spawn.Pipe(duplex=False)
        process = spawn.Process(target=work, args=(left, seed, seconds, str(folder), sender), daemon=True)
        process.start()
        sender.close()
        running = left[0]
        try:
            while True:
                message = receiver.recv()
                if isinstance(message, Done):
                    left.remove(message.target)
                    yield message
                else:
                    running = message
        except EOFError:
            process.join()
        if left:
            yield _ended(running, process.exitcode or 0, folder)
            left.remove(running)


def _ended(target: str, code: int, folder: Path) -> Done:
    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    finding = Finding(target, f"the process ended: {how}", Current.read(folder / "current"))
    return Done(target, 0, 0, 0, 0, 0, [finding])


def _show(done: Done, folder: Path) -> None:
    print(
        f"{done.target:17} {done.n_runs:9,} runs {done.n_refused:9,} refused {done.n_seeds:4} samples {done.n_kept:5,} kept "
        f"{done.n_steps:5,} steps reached {len(done.findings):3} findings",
        flush=True,
    )
    for finding in done.findings:
        path = folder / finding.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(finding.data)
        path.with_suffix(".txt").write_text(f"{finding.what}\n\n{finding.trace}")
        print(f"  FINDING {finding.what}\n  repeat: python -m fuzz --target {finding.target} {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
