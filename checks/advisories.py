"""Whether a pinned dependency has a known vulnerability, by pip-audit; and whether that could be asked at all.

pip-audit by itself reports "No known vulnerabilities found" also where the advisory service knew none of the packages, for instance
behind a mirror that has no advisories.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PINNED = "constraints.txt"
ELSEWHERE = (
    f"Run it on a machine with access to the Internet: pip install pip-audit && pip-audit -r {PINNED} --no-deps --disable-pip\n"
    "(it asks the package index for advisories; --vulnerability-service osv asks the OSV service instead)."
)
COMMAND = ("-r", PINNED, "--no-deps", "--disable-pip", "--format", "json", "--progress-spinner", "off")
FINE, VULNERABLE, NOT_CHECKED = 0, 1, 2


def judged(text: str) -> tuple[int, list[str]]:
    """What an answer of pip-audit means: an exit code, and lines for people."""
    try:
        packages: list[dict[str, Any]] = json.loads(text)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return NOT_CHECKED, ["advisories: NOT CHECKED, pip-audit could not ask the advisory service.", ELSEWHERE]
    checked = [package for package in packages if "skip_reason" not in package]
    lines = [
        f"{package['name']} {package['version']}: {each['id']}, mended in {', '.join(each['fix_versions']) or 'no version yet'}"
        for package in checked
        for each in package["vulns"]
    ]
    if lines:
        return VULNERABLE, [
            *lines,
            f"advisories: {len(lines)} known vulnerabilities; raise the versions, then: make constraints",
        ]
    if len(checked) < len(packages):
        asked = f"advisories: NOT CHECKED, the service here knows {len(checked)} of {len(packages)} packages."
        return NOT_CHECKED, [asked, ELSEWHERE]
    return FINE, [f"advisories: {len(packages)} packages, no known vulnerability"]


def main() -> int:
    """Exit 1 where there is a vulnerability, 2 where the service could not be reached."""
    beside = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("pip-audit")
    try:
        done = subprocess.run([str(beside), *COMMAND], capture_output=True, text=True, check=False)
    except OSError as error:
        print(f"advisories: NOT CHECKED, pip-audit cannot be run ({error.strerror}).\n{ELSEWHERE}")
        return NOT_CHECKED
    code, lines = judged(done.stdout)
    if code == NOT_CHECKED and not done.stdout.strip():
        lines.insert(1, (done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main())
