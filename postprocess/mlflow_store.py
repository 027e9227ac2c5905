"""Writes runs into a store of MLflow with its own package: a folder, or what else MLflow accepts as its tracking URI."""

import os
import warnings
from pathlib import Path

import curves
import naming
import records

MISSING = "--mlflow needs the Python package mlflow ({}): pip install mlflow-skinny, in a venv of your own"
TAG = "kzero.run"  # the identity of a run, by which a later export finds it again
STATUS = dict.fromkeys(records.FINISHED, "FINISHED") | dict.fromkeys(records.FAILED, "FAILED")
MAX_METRICS, MAX_PARAMETERS = 1000, 100  # of one call


def load():
    # Versions from 2026 on refuse folders otherwise, and advise databases.
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    warnings.filterwarnings("ignore", category=FutureWarning, module="mlflow")
    try:
        import mlflow
    except ImportError as problem:
        raise SystemExit(MISSING.format(problem)) from None
    return mlflow


def chunks(values, size):
    return (values[at : at + size] for at in range(0, len(values), size))


class Target:
    """A run of an experiment, which may have values already."""

    last = 0  # values of any step can be added

    def __init__(self, place, run, project):
        mlflow = load()
        self._entities, self._identity = mlflow.entities, curves.identity(run)
        self._client = mlflow.MlflowClient(tracking_uri=place if "://" in place else Path(place).resolve().as_uri())
        experiment = self._client.get_experiment_by_name(project)
        self._experiment = experiment.experiment_id if experiment else self._client.create_experiment(project)
        found = self._client.search_runs([self._experiment], f"tags.`{TAG}` = '{self._identity}'")
        self._run = found[0].info.run_id if found else None
        self.place = f"{place}: experiment {project}"
        self.known = self._read(found[0].data.metrics) if found else {}

    def _read(self, names):
        """The values by (tag, step)."""
        history = {name: self._client.get_metric_history(self._run, name) for name in names}
        return {(name, metric.step): metric.value for name, metrics in history.items() for metric in metrics}

    def rewind(self, _step, _when):
        """Begins a new run, and deletes the earlier one as MLflow does, until `mlflow gc`: values of a run cannot be taken back."""
        self._client.delete_run(self._run)
        self._run, self.known = None, {}

    def add(self, points, run):
        self._run = self._run or self._begin(run)
        metrics = [self._entities.Metric(point.tag, point.value, int(1000 * point.time), point.step) for point in points]
        for some in chunks(metrics, MAX_METRICS):
            self._client.log_batch(self._run, metrics=some)
        status = STATUS.get(run.end.get("reason"), "KILLED") if run.end else "RUNNING"
        if status == "RUNNING":
            self._client.update_run(self._run, status=status)
        else:
            self._client.set_terminated(self._run, status, end_time=int(1000 * run.end["time"]) if "time" in run.end else None)

    def close(self):
        pass

    def _begin(self, run):
        first = run.launches[0][0] if run.launches else {}
        began = int(1000 * first["time"]) if "time" in first else None
        created = self._client.create_run(self._experiment, start_time=began, tags={TAG: self._identity}, run_name=run.name)
        deck = [self._entities.Param(name, naming.text_of(value)) for name, value in naming.deck_of(run).items()]
        for some in chunks(deck, MAX_PARAMETERS):
            self._client.log_batch(created.info.run_id, params=some)
        return created.info.run_id
