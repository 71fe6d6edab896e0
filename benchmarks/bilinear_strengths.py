"""Compare strengths of noise and decay: `python -m benchmarks.bilinear_strengths`.

The figures that `quadric reproduce bilinear` compares with are published without the strengths that
lead to them. The script trains networks on MNIST with several strengths, one seed each, and prints
accuracies and effective ranks beside the published ones. Finished runs are kept in the store. With
the store of `quadric reproduce bilinear`, its runs are used.
"""

import argparse
from pathlib import Path

from joblib import cpu_count

from quadric import datasets
from quadric.apps.paper import _bilinear as reproduction
from quadric.apps.paper._bilinear import cells_of, compare
from quadric.apps.paper._experiment import Context, Part, run_parts
from quadric.apps.paper.sweep import Store, Study, StudyTask

STRENGTHS = ((0.3, 0.25), (0.4, 0.5), (0.5, 1.0), (0.6, 2.0))  # noise, decay
VARIANTS = ("noise", "decay", "both")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("bilinear_strengths.sqlite"))
    parser.add_argument("--jobs", type=int, default=cpu_count())
    arguments = parser.parse_args()
    data, usual = datasets.mnist(), reproduction.study()
    tasks = [
        StudyTask(len(data.X_train), reproduction.WIDTH, variant, seed=0) for variant in VARIANTS
    ]
    print("| variant | noise | decay | accuracy | published | effective rank | published |")
    print("|---|---|---|---|---|---|---|")
    with Store(arguments.store) as store:
        context = Context(images=data, store=store, jobs=arguments.jobs)
        for noise, decay in STRENGTHS:
            settings = {**usual.settings, "noise": noise, "decay": decay}
            study = Study(usual.name, usual.measures, usual.train, settings)
            part = Part(study, tasks, data, (data.name,))
            cells = cells_of(run_parts(context, [part]))
            for variant in VARIANTS:
                one = compare(cells, data.name, variant)
                print(
                    f"| {variant} | {noise:g} | {decay:g} | {one.ours.mean:.2f} | "
                    f"{one.published.accuracy:.2f} | {one.rank.mean:.1f} | {one.published.rank} |"
                )


if __name__ == "__main__":
    main()
