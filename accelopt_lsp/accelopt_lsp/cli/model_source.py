"""Read the options of the benchmarks: who answers, which searches are compared, where results go.

The simulated team, recorded conversations, ablations and presets are in the package that only a checkout has.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from accelopt_lsp.cli.bench import own_module
from accelopt_lsp.cli.failures import wrong_input
from accelopt_lsp.cli.options import host_option, json_option, search_options, search_settings
from accelopt_lsp.models import team_of
from accelopt_lsp.search_plan import budget_of, search_plan
from accelopt_lsp.stderr import say

if TYPE_CHECKING:
    from accelopt_agent.model.team import ModelTeam
    from accelopt_agent.request import Budget, SearchPlan
    from accelopt_lsp.settings.load import Settings
    from nkibench.searching import SearchVariant

F = TypeVar("F", bound=Callable[..., Any])

SIMULATED = "simulated"


def benchmark_options(folder: str, budget: str) -> Callable[[F], F]:
    """Return the options that ``BenchmarkSearch.of`` reads, and ``--out`` and ``--json``.

    Results go to ``folder`` and a task's ``budget`` is that unless said otherwise.
    """
    options: list[Callable[[F], F]] = [
        click.option(
            "--out", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", default=Path(folder),
            show_default=True, help="Where the results go. A run that was ended goes on there.",
        ),
        click.option("--optimize", is_flag=True, help="Search faster versions of every kernel that passes."),
        click.option("--model", metavar="NAME", help="Ask this model at the address of the settings."),
        click.option("--no-model", is_flag=True, help="Ask no model, whatever the settings say."),
        click.option(
            "--simulate", type=int, metavar="SEED",
            help="Ask the simulated team instead of a model: it draws rules by lot and breaks half of what it writes.",
        ),
        click.option(
            "--conversation", type=click.Path(path_type=Path, exists=True, dir_okay=False), metavar="FILE",
            help="Play this recorded conversation instead of asking a model.",
        ),
        click.option(
            "--record", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
            help="Keep what the simulated team says, to be played again.",
        ),
        click.option(
            "--preset", type=click.Choice(("accelopt", "stark")),
            help="Search as a paper did: strategy, team and budget at once.",
        ),
        click.option(
            "--ablations", is_flag=True,
            help="Search once for each: everything, search only, team only, no memory, one agent, sampling.",
        ),
        click.option(
            "--ablation", "ablation",
            type=click.Choice(("everything", "search only", "team only", "no memory", "one agent", "sampling")),
            multiple=True, help="Only this one of them; can be given again.",
        ),
        search_options,
        click.option(
            "--budget", metavar="LIMITS", help=f"Per task, as for `optimize`; the preset's, or {budget}."
        ),
        host_option,
        json_option,
    ]  # fmt: skip

    def add(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def search_variants(names: Sequence[str], *, everything: bool, plan: SearchPlan) -> tuple[SearchVariant, ...]:
    """Return the ablations of ``plan`` that are asked for; the plain search where none is, or none proposes."""
    from nkibench.searching import SearchVariant

    variants: tuple[SearchVariant, ...] = ()
    if names or everything:
        variants = own_module("search.ablations", "bench --ablations").variants(names, everything, plan)
    return variants or (SearchVariant(plan),)


@dataclass(frozen=True)
class BenchmarkSearch:
    """How a benchmark searches: by whom, each of ``variants``, in ``limits`` per task; None where it does not."""

    settings: Settings
    speaker: ModelSource
    variants: tuple[SearchVariant, ...]
    limits: Budget | None

    @classmethod
    def of(
        cls, folder: str, usual: str, *, host: str | None, optimize: bool, preset: str | None, ablations: bool,
        ablation: Sequence[str], budget: str | None, strategy: str | None, sources: str | None,
        given: Sequence[str], in_time: bool = True, **speaker: Any,
    ) -> BenchmarkSearch:  # fmt: skip
        """Read the options; consent is that of ``folder``, ``usual`` the budget without ``--budget`` and preset.

        The settings limit the time of a task only ``in_time``.

        Raises:
            CommandError, UserError: they cannot be used.
        """
        own: Mapping[str, Any] = (
            own_module("search.presets", "bench --preset").preset(preset) if preset else {}
        )
        settings = search_settings(
            Path.cwd(), {"host": host}, strategy=strategy, sources=sources, preset=own, given=given
        )
        plan = search_plan(settings)
        model_source = ModelSource(settings, Path.cwd() / folder, **speaker)
        variants = search_variants(ablation, everything=ablations, plan=plan)
        limited = settings
        if not in_time:
            limited = replace(settings, search=replace(settings.search, minutes=math.inf))
        searches = optimize or ablations or ablation or preset
        limits = budget_of(limited, budget or ("" if preset else usual)) if searches else None
        return cls(settings, model_source, variants, limits)


@dataclass
class ModelSource:
    """Brings the team that a benchmark asks; see ``model_source_options``."""

    settings: Settings
    folder: Path
    model: str | None = None
    no_model: bool = False
    simulate: int | None = None
    conversation: Path | None = None
    record: Path | None = None

    def __post_init__(self) -> None:
        choices = [
            self.model is not None,
            self.no_model,
            self.simulate is not None,
            self.conversation is not None,
        ]
        if sum(choices) > 1:
            raise wrong_input("Give one of --model, --no-model, --simulate and --conversation.")
        if self.record is not None and self.simulate is None:
            raise wrong_input("--record keeps what --simulate says; give that too.")
        self._answering, self._name = self._whose()

    @contextmanager
    def team(self) -> Iterator[ModelTeam | None]:
        """Yield whom to ask for as long as the context is open: from the beginning of the conversation. None for
        nobody."""
        if self._answering is None:
            yield self._team_to_ask()
            return
        from accelopt_agent.model.settings import ModelSettings

        serving = own_module("simulated.serving", "bench --simulate").serving
        model_settings = self.settings.model
        priced = bool(model_settings.price_in or model_settings.price_out)
        with serving(self._answering, self._name) as url:
            model = ModelSettings(
                url, self._name, key_variable="ACCELOPT_SIMULATED_KEY",
                price_in=model_settings.price_in if priced else None,
                price_out=model_settings.price_out if priced else None,
            )  # fmt: skip
            yield team_of(self.settings, model, one_model=True)

    def keep(self) -> None:
        """Write what was said to the file of ``--record``.

        Raises:
            OSError: it cannot be written.
        """
        if self.record is not None and self._kept is not None:
            self._kept.save(self.record)

    #: The conversation that is recorded.
    _kept: Any = None

    def _whose(self) -> tuple[Any, str]:
        """Return who answers in the place of a model, None for nobody, and the name to ask for."""
        if self.conversation is None and self.simulate is None:
            return None, ""
        serving = own_module("simulated.serving", "bench --simulate")
        if self.conversation is not None:
            try:
                played = serving.read_conversation(self.conversation)
            except (OSError, ValueError) as error:
                raise wrong_input(str(error)) from None
            say(f"Playing {self.conversation.name}. {played.source}")
            return played.answer, played.model
        team = own_module("simulated.team", "bench --simulate").SimulatedTeam(seed=self.simulate)
        source = f"Said by the simulated team (seed {self.simulate}) through the real client, not by a model."
        self._kept = serving.Conversation(source, datetime.date.today().isoformat(), SIMULATED)
        return self._kept.recording(team.answer), SIMULATED

    def _team_to_ask(self) -> ModelTeam | None:
        from accelopt_lsp.models import resolve_team

        if self.no_model:
            return None
        settings = self.settings
        if self.model is not None:
            if not settings.model.base_url:
                raise wrong_input("--model: the settings have no model.base_url to ask it at.")
            settings = replace(settings, model=replace(settings.model, model=self.model))
        team, why_not = resolve_team(settings, self.folder)
        if why_not:
            say(why_not)
        return team
