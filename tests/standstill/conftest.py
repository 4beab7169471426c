# SPDX-License-Identifier: Apache-2.0
"""Counts how often a part of the verdict was right, in the last lines."""

from verdict_scores import pytest_sessionfinish, pytest_terminal_summary  # noqa: F401 (hooks of pytest)
