"""The schedulers there are: one line a policy, and what others register under `emu.schedulers`."""

import copyreg
import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from actors.scheduler import Scheduler
from actors.schedulers.user.own import raised
from actors.schedulers.variants import Variant, make_variant, read_variant
from workloads.errors import InputError
from workloads.hints import did_you_mean

ENTRY_POINTS = "emu.schedulers"
# The methods of users' own schedulers, and the modules of `actors.schedulers.user` that host them.
_OWN = {
    "order": "coflows",
    "rates": "coflows",
    "launch": "dags",
    "on_arrival": "jobs_probing",
    "place": "jobs_central",
}

# By family and name: the module beside this one, and what it calls the scheduler. A policy is imported when it is
# used: to import all of them takes a tenth of a small run.
_PLACES = {
    "jobs": {
        "random": "random_placement.RANDOM",
        "sparrow": "sparrow.SPARROW",
        "hawk": "hawk.HAWK",
        "eagle": "eagle.EAGLE",
        "ideal-eagle": "eagle.IDEAL_EAGLE",
        "central-fifo": "central_fifo.CENTRAL_FIFO",
        "central-lwl": "central_lwl.CENTRAL_LWL",
        "dist-lwl": "dist_lwl.DIST_LWL",
        "sparrow-c": "sparrow.SPARROW_C",
        "hawk-c": "hawk.HAWK_C",
        "eagle-c": "eagle.EAGLE_C",
        "central-c": "central_lwl.CENTRAL_C",
        "phoenix": "phoenix.PHOENIX",
        "phoenix-released": "phoenix.PHOENIX_RELEASED",
        "yacc-d": "yacc_d.YACC_D",
        "central-fcfs-gang": "central_fcfs_gang.CENTRAL_FCFS_GANG",
        "easy": "easy.EASY",
        "conservative": "conservative.CONSERVATIVE",
    },
    "coflows": {
        "fifo": "fifo.FIFO",
        "scf": "fifo.SCF",
        "ncf": "fifo.NCF",
        "lcf": "fifo.LCF",
        "sebf": "sebf.SEBF",
        "sincronia": "sincronia.SINCRONIA",
        "dcoflow": "dcoflow.DCOFLOW",
        "wdcoflow": "dcoflow.WDCOFLOW",
        "cs-mha": "cs_mha.CS_MHA",
        "edf": "edf.EDF",
        "sebf-deadline": "sebf.SEBF_DEADLINE",
        "varys-deadline": "varys_deadline.VARYS_DEADLINE",
        "chronos": "chronos.CHRONOS",
        "cds-lp": "cds_lp.CDS_LP",
        "cds-lpa": "cds_lp.CDS_LPA",
        "order-ilp": "order_ilp.ORDER_ILP",
        "fair": "fair.FAIR",
        "pfp": "pfp.PFP",
        "aalo": "aalo.AALO",
        "aalo-oracle": "aalo.AALO_ORACLE",
        "aalo-shares": "aalo_shares.AALO_SHARES",
        "saath": "saath.SAATH",
        "philae": "philae.PHILAE",
    },
    "dags": {
        "drf": "drf.DRF",
        "fair-dags": "drf.FAIR",
        "cpm": "drf.CPM",
        "capacity": "capacity.CAPACITY",
        "sjf": "shortest.SJF",
        "srtf": "shortest.SRTF",
        "tetris": "tetris.TETRIS",
        "tetris-fair": "tetris.TETRIS_FAIR",
        "heft": "heft.HEFT",
        "dagps": "dagps.DAGPS",
        "carbyne": "carbyne.CARBYNE",
    },
}


@cache
def _built_in(name: str) -> Scheduler | None:
    """The built-in scheduler of this name, or None."""
    if not any(name in places for places in _PLACES.values()):
        return None
    module, _, own = place_of(name).rpartition(".")
    found: Scheduler = getattr(importlib.import_module(module), own)
    return found


def place_of(name: str) -> str:
    """The module of a built-in scheduler, and its name there: `actors.schedulers.jobs.eagle.EAGLE`.

    Raises:
        InputError: no scheduler of this name is built in.
    """
    for family, places in _PLACES.items():
        if name in places:
            return f"actors.schedulers.{family}.{places[name]}"
    known = [known for places in _PLACES.values() for known in places]
    raise InputError(f"no built-in scheduler {name!r}{did_you_mean(name, known)}")


def built_in_schedulers(family: str | None = None) -> tuple[Scheduler, ...]:
    """All built-in schedulers, or those of a family; imports every such policy."""
    names = (name for known, places in _PLACES.items() if family in (None, known) for name in places)
    return tuple(scheduler for name in names if (scheduler := _built_in(name)) is not None)


def coordinator_names() -> tuple[str, ...]:
    """Names of the built-in schedulers of coflows that also coordinate the shuffles of DAG jobs."""
    return tuple(one.name for one in built_in_schedulers("coflows") if one.transfers is not None)


def scheduler_names(family: str | None = None) -> tuple[str, ...]:
    """Names of all schedulers, the built-in ones first."""
    found = [name for known, places in _PLACES.items() if family in (None, known) for name in places]
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        if family is None or _is_of(entry.name, family):
            found.append(entry.name)
    return tuple(dict.fromkeys(found))


def _is_of(name: str, family: str) -> bool:
    """Whether an installed scheduler is of a family; False if it cannot be loaded, an error where it is used."""
    try:
        return find_scheduler(name).family == family
    except InputError:
        return False


def find_scheduler(scheduler: Any) -> Scheduler:
    """The scheduler of a name, of "module:Class" or "file.py:Class", or of a user's own object or class.

    A variant, or text such as "eagle@slack=2" that means one, is the scheduler with these settings.

    Raises:
        InputError: there is no such scheduler; the message gives the nearest name.
    """
    if isinstance(scheduler, Scheduler):
        return scheduler
    if isinstance(scheduler, str) and "@" in scheduler:
        scheduler = read_variant(scheduler) or scheduler
    if isinstance(scheduler, Variant):
        return make_variant(find_scheduler(scheduler.scheduler), scheduler.settings, scheduler.name)
    if not isinstance(scheduler, str):
        return _wrap(scheduler)
    built_in = _built_in(scheduler)
    if built_in is not None:
        return built_in
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS, name=scheduler):
        try:
            found = entry.load()
        except BaseException as error:  # whatever a package does when it is imported
            raise raised(f"scheduler {scheduler}: {entry.value}: ", error) from error
        return found if isinstance(found, Scheduler) else _wrap(found, scheduler)
    if ":" in scheduler:
        return _load(scheduler)
    if "@" in scheduler:
        raise InputError(
            f"no scheduler {scheduler!r}; a variant is written NAME@PARAMETER=VALUE, as eagle@slack=2"
        )
    raise InputError(f"no scheduler {scheduler!r}{did_you_mean(scheduler, scheduler_names())}")


def _reduce(scheduler: Scheduler) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return how a scheduler is pickled: by its name, because compiled loops cannot be pickled."""
    return scheduler.remade or (find_scheduler, (scheduler.name,))


copyreg.pickle(Scheduler, _reduce)


def _load(reference: str) -> Scheduler:
    """A class named by "module:Class" or "path/to/file.py:Class"."""
    place, _, name = reference.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(f"own_{Path(place).stem}", place)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
    except SyntaxError as error:
        raise InputError(f"{error.msg}; it must be Python", file=error.filename, line=error.lineno) from None
    except BaseException as error:  # whatever a user's module does when it is imported
        raise raised(f"scheduler {reference!r}: ", error) from error
    if not hasattr(module, name):
        known = [n for n, v in vars(module).items() if isinstance(v, type) and _OWN.keys() & set(dir(v))]
        raise InputError(f"scheduler {reference!r}: {place} has no {name!r}{did_you_mean(name, known)}")
    found = getattr(module, name)
    if not isinstance(found, Scheduler):
        return _wrap(found)
    # Another process finds it by its file, which it may look for from another folder.
    there = f"{Path(place).resolve()}:{name}" if place.endswith(".py") else reference
    return replace(found, remade=found.remade or (find_scheduler, (there,)))


def _wrap(own: Any, name: str | None = None) -> Scheduler:
    """A user's own class or object, by its method: of coflows, DAGs, or jobs."""
    kind = next(
        (kind for method, kind in _OWN.items() if callable(getattr(own, method, None))), "jobs_central"
    )
    wrapped: Scheduler = importlib.import_module(f"actors.schedulers.user.{kind}").wrap(own, name)
    return wrapped
