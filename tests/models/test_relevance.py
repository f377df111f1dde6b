import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from recrawl.errors import BadModel, NotEnoughData, RecrawlError
from recrawl.models.relevance import MAX_BYTES, Relevance, train, words
from recrawl.sources.labels import read_labels

ON = [f"https://e.org/politics/election-{i}-vote" for i in range(20)]
OFF = [f"https://e.org/sport/match-{i}-goal" for i in range(20)]
TRUTH = [True] * 20 + [False] * 20


def test_it_tells_topics_apart_and_says_how_well() -> None:
    model = train(ON + OFF, TRUTH)
    assert model.accuracy == 1.0
    probability = model.predict(["https://f.org/politics/vote", "https://f.org/sport/goal"])
    assert probability[0] > 0.5 > probability[1]


def test_its_probabilities_are_those_of_scikit_learn() -> None:
    model = train(ON + OFF, TRUTH)
    vectorizer = TfidfVectorizer(analyzer=words, sublinear_tf=True)
    x = vectorizer.fit_transform(ON + OFF)
    plain = LogisticRegression(class_weight="balanced", C=10.0, max_iter=1000, random_state=0).fit(x, TRUTH)
    asked = [*ON[:3], *OFF[:3], "https://e.org/politics/sport", ""]
    expected = plain.predict_proba(vectorizer.transform(asked))[:, 1]
    np.testing.assert_allclose(model.predict(asked), expected, atol=1e-6)


def test_it_survives_the_disk(tmp_path: Path) -> None:
    model = train(ON + OFF, TRUTH)
    model.save(tmp_path / "r.json")
    np.testing.assert_array_equal(Relevance.load(tmp_path / "r.json").predict(ON), model.predict(ON))


@pytest.mark.parametrize(
    "content", ["", "{}", '{"kind": "recrawl relevance", "words": ["a"], "idf": [], "weight": []}']
)
def test_a_damaged_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(RecrawlError, match="not a relevance classifier"):
        Relevance.load(tmp_path / "r.json")
    with pytest.raises(RecrawlError, match="there is no file"):
        Relevance.load(tmp_path / "missing.json")


def test_examples_of_one_kind_teach_nothing() -> None:
    with pytest.raises(NotEnoughData, match="0 irrelevant"):
        train(ON, [True] * 20)


def test_labels_are_read_from_csv_and_json_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("url,label\nhttps://e.org/a,1\nhttps://e.org/b,no\nhttps://e.org/c,maybe\n")
    assert list(read_labels(str(tmp_path / "a.csv"))) == [("https://e.org/a", True), ("https://e.org/b", False), None]
    (tmp_path / "b.jsonl").write_text('{"text": "a vote", "label": true}\nnonsense\n{"url": "u", "label": 0}\n')
    assert list(read_labels(str(tmp_path / "b.jsonl"))) == [("a vote", True), None, ("u", False)]


def test_every_forged_classifier_is_refused_with_one_error_or_can_be_used(tmp_path: Path) -> None:
    content = json.loads(train(["oil spill", "oil rig", "cat food", "cat toys"], [True, True, False, False]).to_bytes())
    odd = [None, True, -1, 1e308, 10**400, "", "x", [], ["x"], [[1.0]], {}, {"x": 1}, [None] * len(content["words"])]
    forged = [content | {name: value} for name in content for value in odd]
    forged += [{key: value for key, value in content.items() if key != name} for name in content]
    texts = [json.dumps(each).encode() for each in (*forged, *odd)] + [
        b"[" * 100_000,
        b"\xff",
        b"NaN",
        b" " * (MAX_BYTES + 1),
    ]
    n_used = 0
    for text in texts:
        (tmp_path / "r.json").write_bytes(text)
        message = ""
        try:
            judged = Relevance.load(tmp_path / "r.json").predict(["oil", "x"])
        except BadModel as error:
            message = str(error)
        if message:
            assert message.endswith("r.json is not a relevance classifier of recrawl; make one with: recrawl relevance")
        else:
            n_used += 1
            assert ((judged >= 0) & (judged <= 1)).all()
    assert 0 < n_used < len(texts) / 2
