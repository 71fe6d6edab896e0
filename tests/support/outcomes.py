"""How outcomes of experiments are shown on the terminal and in the report."""

from quadric.apps.paper import Verdict


def check_presentation(outcome):
    """Check the main result, the findings and the descriptions of the figures."""
    main = outcome.headline
    assert 0 < len(main.what) <= 34, main.what
    assert 0 < len(main.paper) <= 16, main.paper
    assert 0 < len(main.ours) <= 16, main.ours
    verdicts = {claim.id: claim.verdict for claim in outcome.claims}
    if main.claim:
        assert main.verdict is verdicts.get(main.claim, Verdict.UNKNOWN)
    assert outcome.findings
    assert all(finding.endswith(".") for finding in outcome.findings)
    for name in outcome.figures:  # the caption describes what is drawn, not what is seen
        described = outcome.descriptions.get(name, "")
        assert described != outcome.captions[name]
        assert len(described) > 80 or name.startswith("bilinear_eigenvectors"), name
