"""What tests of the page of the workbench ask of a tab: what the browser complains about, what is in the address."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.browser import Page

READY = "document.querySelectorAll('.pane').length === 9 && document.readyState === 'complete'"


def complaints(page: Page) -> list[str]:
    """Return what the browser complains about: errors, violations of the policy, requests to anywhere else."""
    told = page.told(lambda event: event["method"] == "Runtime.exceptionThrown" or _is_warning(event))
    asked = page.told(lambda event: event["method"] == "Network.requestWillBeSent")
    addresses = {event["params"]["request"]["url"] for event in asked}
    elsewhere = [url for url in addresses if not url.startswith(("http://127.0.0.1:", "data:", "about:"))]
    return [str(event["params"])[:300] for event in told] + elsewhere


def _is_warning(event: dict[str, Any]) -> bool:
    """Whether the browser notes more than what it tells for information, as that a focus stays where it is."""
    return event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] != "info"


def state(page: Page) -> dict[str, str]:
    """Return what stands in the address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.run("location.href")).fragment).items()}
