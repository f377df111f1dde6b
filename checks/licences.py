"""Every package that recrawl needs, with all extras and whatever these need, has a licence that goes with Apache-2.0."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT",
        "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "ZPL-2.1", "Zlib",
    }
)  # fmt: skip
#: Other names of the same, as older metadata has them.
NAMES = {
    "3-Clause BSD License": "BSD-3-Clause", "Apache 2.0": "Apache-2.0", "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0", "Apache Software License": "Apache-2.0",
    "BSD 2-Clause License": "BSD-2-Clause", "BSD License": "BSD", "ISC License": "ISC", "ISC License (ISCL)": "ISC",
    "MIT License": "MIT", "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0", "PSFL": "PSF-2.0",
    "Python Software Foundation License": "PSF-2.0",
}  # fmt: skip
#: Packages whose metadata does not say, or not in these words: read in their file LICENSE.
BY_HAND = {"skops": "MIT", "python-dateutil": "Apache-2.0 OR BSD-3-Clause"}


def needed(root: str, extras: Iterable[str]) -> dict[str, Distribution]:
    """Every installed package that a package needs, with extras; those for other systems are not installed, nor looked at."""
    found: dict[str, Distribution] = {}
    waiting = [(root, frozenset(extras))]
    seen = set(waiting)
    while waiting:
        name, wanted = waiting.pop()
        try:
            package = distribution(name)
        except PackageNotFoundError:
            sys.exit(
                f"{name} is not installed; run make check-deps, which installs everything, or pip install '{root}[dev]'"
            )
        found[canonicalize_name(name)] = package
        for text in package.requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *wanted)):
                following = (canonicalize_name(requirement.name), frozenset(requirement.extras))
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)
    return found


def licence(package: Distribution) -> str:
    """The licence of a package as an SPDX expression, as far as its metadata says; empty: it does not."""
    about = package.metadata
    stated = about.get("License-Expression")
    if stated:
        return str(stated)
    if (by_hand := BY_HAND.get(str(about["Name"]).lower())) is not None:
        return by_hand
    short = str(about.get("License") or "").strip()
    if short and "\n" not in short and short != "UNKNOWN" and len(short) < 60:
        return NAMES.get(short, short)
    classified = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License :: ")
    ]
    names = [NAMES.get(name, name) for name in classified if name not in ("OSI Approved", "DFSG approved")]
    return " AND ".join(names)


def is_allowed(expression: str) -> bool:
    """Whether all parts of an expression are allowed, of alternatives one.

    >>> is_allowed("MIT OR GPL-3.0-only"), is_allowed("MIT AND GPL-3.0-only"), is_allowed("MPL-2.0 AND (Apache-2.0 OR MIT)")
    (True, False, True)
    """
    inner = re.search(r"\(([^()]*)\)", expression)
    while inner:
        expression = expression.replace(inner[0], "MIT" if is_allowed(inner[1]) else "refused")
        inner = re.search(r"\(([^()]*)\)", expression)
    return any(all(part.strip() in ALLOWED for part in choice.split(" AND ")) for choice in expression.split(" OR "))


def main() -> int:
    """Exit 1, with names, where a licence is missing or not on the list."""
    packages = needed("recrawl", ("crawl", "dev", "docs", "engine", "store"))
    refused = {name: licence(package) for name, package in sorted(packages.items()) if not is_allowed(licence(package))}
    for name, text in refused.items():
        print(
            f"{name} {packages[name].version}: {text or 'states no licence'}, which is not on the list in checks/licences.py"
        )
    print(f"licences: {len(packages)} packages, {len(refused)} not allowed")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
