"""The result of ``simulate``: estimates of several verifiers and numbers of drafts, and their table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from spectheory.foundation.documents import count_text
from spectheory.foundation.results import Result, Table, no_verdict
from spectheory.simulation.estimates import Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """The estimates of a run, and its settings.

    Attributes:
        estimates: one per verifier and K, in the order of the arguments.
        settings: record of the settings, models and prompts.
        interrupted: True if Ctrl-C stopped the run.  The estimates then cover the finished prompts.
    """

    estimates: list[Estimate]
    settings: dict[str, Any]
    interrupted: bool = False

    def __bool__(self) -> bool:
        raise no_verdict(self, ".estimates")

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of ``spectheory simulate --json``."""
        estimates = [asdict(entry) for entry in self.estimates]
        return {**self.settings, "interrupted": self.interrupted, "estimates": estimates}

    def headline(self) -> str:
        names = ", ".join(dict.fromkeys(entry.verifier for entry in self.estimates))
        return f"block efficiency of {names}, {self._drafted()}"

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per verifier and K."""
        rows: list[dict[str, Any]] = [
            {
                "verifier": entry.verifier,
                "lossless": entry.lossless,
                "num_drafts": entry.num_drafts,
                "draft_length": self.settings["draft_length"],
                "block_efficiency": entry.block_efficiency,
                "low": entry.interval[0],
                "high": entry.interval[1],
                "standard_error": entry.standard_error,
                "counted": entry.counted,
                "counted_low": entry.counted_interval[0],
                "counted_high": entry.counted_interval[1],
                "counted_standard_error": entry.counted_standard_error,
                "samples": entry.samples,
                "interrupted": self.interrupted,
            }
            for entry in self.estimates
        ]
        if "against" in self.settings:
            for row, entry in zip(rows, self.estimates, strict=True):
                low, high = entry.gain_interval or (None, None)
                row |= {"against": self.settings["against"], "gain": entry.gain}
                row |= {"gain_low": low, "gain_high": high}
        return rows

    def tables(self) -> list[Table]:
        """Make the table, a row per verifier and K.  The title has the size of the run."""
        settings, tokens = self.settings, self.settings.get("max_new_tokens")
        rows = self.rows()
        for row in rows:
            row["name"] = row["verifier"] + (" *" if row["lossless"] is False else "")
        if "prompts" in settings:
            prompts = settings.get("prompts_used", settings["prompts"])
            each = count_text(settings["samples_per_prompt"], "text" if tokens else "draw")
            size = f"{prompts} prompts, {each}{f' of {tokens} tokens' if tokens else ''} each"
            size += ", written by the target" if settings.get("common_texts") else ""
        else:
            size = count_text(settings["samples"], "draw")
        columns = {"verifier": "{name}"}
        columns |= {"K": "{num_drafts}"} if isinstance(settings["num_drafts"], list) else {}
        columns["estimate"] = "{block_efficiency:.4f} ({low:.4f} to {high:.4f})"
        if any(row.get("gain") is not None for row in rows):
            columns[f"gain over {settings['against']}"] = "{gain:+.3f} ({gain_low:+.3f} to {gain_high:+.3f})"
        columns["counted"] = "{counted:.4f} ({counted_low:.4f} to {counted_high:.4f})"
        columns["calls" if tokens else "draws"] = "{samples}"
        note = f"with intervals at {100 * settings['confidence']:g} %"
        if any(row["lossless"] is False for row in rows):
            note += "\n* not lossless on its own: its output differs from the target's"
        title = f"block efficiency in tokens per target call\n{self._drafted()}, {size}"
        for name, defect in settings.get("draft_defects", {}).items():
            title = f"draft defect δ = {defect:.4g}: {name}\n{title}"
        return [Table(title, rows, columns, note)]

    def _drafted(self) -> str:
        if process := self.settings.get("draft_process"):
            return f"drafts of {process}, up to {self.settings['draft_length']} tokens deep"
        asked = self.settings["num_drafts"]
        numbers = ", ".join(map(str, asked if isinstance(asked, list) else [asked]))
        return f"{numbers} x {self.settings['draft_length']} drafted tokens"
