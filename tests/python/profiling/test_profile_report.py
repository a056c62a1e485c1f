"""The profiler's reports: whatever was found, the JSON is strict, the HTML whole, and nothing is missing."""

from __future__ import annotations

import dataclasses
import functools
import html.parser
import io
import json
import os
import re
import shlex
import subprocess
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from rich.console import Console

import dali_l3
from dali_l3.profiling import report
from dali_l3.profiling.choosing import Choice, Mix
from dali_l3.profiling.cost_model import Conditions, Prediction
from dali_l3.profiling.diagnosis import Diagnosis
from dali_l3.profiling.measuring import Throughput
from dali_l3.profiling.ratio_search import RatioSearch, Step
from dali_l3.profiling.report import figures, tables
from profiles import BMP, CONDITIONS, JPEG, PNG, format_profile, profile, quality, stage, written

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "/data/<b>&\"'\x1b[31m [red]\n\u202e" + os.fsdecode(b"\xff") + "/übung"
VOID = {"meta", "br", "hr", "img", "input", "link"}


def everything():
    """A profile with all that there can be."""
    found = profile(costs=(PNG, BMP, JPEG))
    found.formats["jpeg@95"] = format_profile(JPEG, psnr=41.5, replaced=3)
    found.quality = [
        quality(),
        quality("webp@75", images=47, psnr=None, least_psnr=None, ssim=None, lossless_bytes=None),
    ]
    found.written = written(found.recommendation)
    found.failures = [(f"/data/{number}.png", "damaged PNG file") for number in range(12)]
    return found


PROFILES = {
    "plain": profile(),
    "everything": everything(),
    "one format": profile(costs=(PNG,)),
    "all in memory": profile(conditions=Conditions(images=100, cache_size=10**12, cpus=2)),
    "partly in memory": profile(conditions=Conditions(images=1000, cache_size=4 * 10**9, cpus=2)),
    "no cache": profile(conditions=Conditions(images=2000, cache_size=0, cpus=64, copy_seconds=1e-3)),
    "equal formats": profile(costs=(PNG, dataclasses.replace(PNG, format="tiff"))),
    "a step": profile(
        diagnosis=Diagnosis(
            [stage("synthetic", 50.0), *profile().diagnosis.stages], "step", ["The training step limits."]
        )
    ),
    "no batch times": profile(
        diagnosis=Diagnosis([dataclasses.replace(stage("disk", 37.0), batch_seconds=[])], "disk", [])
    ),
    "hostile names": profile(HOSTILE, failures=[(HOSTILE, "reason <i> & \x07")]),
}
each_profile = pytest.mark.parametrize("found", PROFILES.values(), ids=PROFILES.keys())


@functools.cache
def html_of(name):
    """The page of a profile. Drawing its figures takes most of the time of these tests."""
    return report.to_html(PROFILES[name])


def printed(found, width=80, encoding="utf-8", terminal=False, **options):
    """What `show` prints on such a console."""
    file = io.BytesIO()
    with io.TextIOWrapper(file, encoding) as text:
        report.show(found, Console(file=text, width=width, force_terminal=terminal, color_system=None, **options))
        text.flush()
        return file.getvalue().decode(encoding)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def parse_strictly(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert text.isascii()
    return json.loads(text, parse_constant=refuse)


@each_profile
def test_json_holds_what_was_found(found):
    document = parse_strictly(report.to_json(found))
    assert document["source"] == found.source
    assert document["conditions"] == dataclasses.asdict(found.conditions)
    assert document["formats"].keys() == found.formats.keys()
    assert [mix["weights"] for mix in document["choice"]["front"]] == [mix.weights for mix in found.choice.front]
    assert document["recommendation"]["weights"] == found.recommendation.weights
    assert document["recommendation"]["prediction"]["throughput"] == found.recommendation.prediction.throughput
    assert document["failures"] == [list(failure) for failure in found.failures]
    assert (document["search"] is None) == (found.search is None)
    if found.search:
        assert document["search"]["search"]["best"]["ratio"] == found.search.search.best.ratio
    assert (document["written"] is None) == (found.written is None)


def test_json_names_machine_versions_and_date():
    import nvidia.dali

    document = parse_strictly(report.to_json(profile()))
    assert document["machine"]["versions"]["dali_l3"] == dali_l3.__version__
    assert document["machine"]["versions"]["dali"] == nvidia.dali.__version__
    assert document["machine"]["cpu"]
    assert document["machine"]["memory_bytes"] > 10**8
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", document["date"])


def test_json_has_null_for_loading_without_limit():
    document = parse_strictly(report.to_json(PROFILES["all in memory"]))
    assert all(step["load"] is None and step["throughput"] > 0 for step in document["search"]["search"]["steps"])


def test_json_takes_the_numbers_of_numpy():
    odd = dataclasses.replace(profile().search, program=np.float64("inf"), agrees=np.bool_(True))
    document = parse_strictly(report.to_json(profile(search=odd, images=np.int64(7))))
    assert (document["search"]["program"], document["search"]["agrees"], document["images"]) == (None, True, 7)


# ---- HTML ------------------------------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Checks that elements nest; gathers text, attributes and elements."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.elements, self.attributes = [], "", [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += attributes
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append(tag)
        self.attributes += attributes

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("name", PROFILES)
def test_html_is_whole_and_shows_all(name):
    found, text = PROFILES[name], html_of(name)
    assert text.encode().decode() == text
    page = Page(text)
    assert page.elements.count("svg") == (5 if found.search else 3)
    assert (tables.command(found) or "") in page.text
    assert ("dali-l3 convert" in page.text) == (found.advice == "convert")
    assert not (found.advice == "stay" and "recommended" in page.text)
    for sentence in tables.recommendation(found):
        assert sentence in page.text
    for table in tables.all_tables(found):
        for cell in (table.title, *table.columns, *table.notes, *(cell for row in table.rows for cell in row)):
            assert cell in page.text
    drawn = re.findall(r"<svg\b.*?</svg>", text, re.DOTALL)
    assert len(drawn) == page.elements.count("svg")
    for svg in drawn:
        check_that_it_is_of_finite_numbers_in_the_colour_of_the_text(svg)


def check_that_it_is_of_finite_numbers_in_the_colour_of_the_text(svg):
    assert ElementTree.fromstring(svg).tag == SVG + "svg"
    assert "currentColor" in svg
    assert figures._INK not in svg
    assert not re.search(r"\b(nan|inf)\b", svg)


def test_html_needs_no_other_file():
    text = html_of("everything")
    page = Page(text)
    assert not {"script", "img", "link", "iframe", "image", "object"} & set(page.elements)
    for name, value in page.attributes:
        assert name != "src"
        assert not name.endswith("href") or value.startswith("#")
        assert name.startswith("xmlns") or "://" not in value
    assert "@import" not in text
    assert "<!DOCTYPE svg" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)", text))


def test_identifiers_in_html_are_unique_and_found():
    page = Page(html_of("everything"))
    identifiers = [value for name, value in page.attributes if name == "id"]
    assert len(identifiers) == len(set(identifiers))
    references = [value[1:] for name, value in page.attributes if name.endswith("href")]
    references += re.findall(r"url\(#([^)]*)", " ".join(value for _, value in page.attributes))
    assert references
    assert set(references) <= set(identifiers)


def test_html_shows_names_as_they_are_not_as_markup():
    page = Page(html_of("hostile names"))
    assert "b" not in page.elements
    assert "i" not in page.elements
    assert "<b>&\"'" in page.text
    assert "/übung" in page.text
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", page.text)


# ---- Figures ---------------------------------------------------------------------------------------------------------


def figures_of(found):
    return {
        "formats": figures.formats(found),
        "batch times": figures.batch_times(found),
        "choices": figures.choices(found),
        "balance": figures.balance(found),
        "ratios": figures.ratios(found),
    }


def texts(svg):
    return ["".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(SVG + "text")]


def test_figures_name_what_they_show():
    found = PROFILES["everything"]
    drawn = {name: texts(svg) for name, svg in figures_of(found).items()}
    assert {"10:0", "5:5", "0:10", "loading = decoding", "measured", "png:bmp"} <= set(drawn["balance"])
    assert f"recommended: {tables.mix_name(found.recommendation)}" in drawn["balance"]
    assert {f"{tenths}:{10 - tenths}" for tenths in range(11)} <= set(drawn["ratios"])
    assert {"loading", "decoding", "CPUs", "predicted", "measured", "linear program"} <= set(drawn["ratios"])
    assert {"png", "bmp", "jpeg@95", "written dataset"} <= set(drawn["formats"])
    assert {"memory", "page cache", "disk", "p50", "p99"} <= set(drawn["batch times"])
    assert {"png", "bmp", "nothing beats these", "one format"} <= set(drawn["choices"])
    assert f"recommended: {tables.mix_name(found.recommendation)}" in drawn["choices"]


def test_figures_are_the_same_whatever_the_defaults():
    import matplotlib

    expected = figures_of(PROFILES["everything"])
    assert all(svg in html_of("everything") for svg in expected.values())
    with matplotlib.rc_context({"axes.facecolor": "red", "axes.titlesize": 30, "font.size": 30}):
        assert figures_of(PROFILES["everything"]) == expected
        assert matplotlib.rcParams["font.size"] == 30


def measured_places(svg):
    """Positions, x to the right and y down, of the markers of what was measured, in the order of the steps."""
    root = ElementTree.fromstring(svg)
    legends = [group for group in root.iter(SVG + "g") if "legend" in group.get("id", "")]
    keys = {use for legend in legends for use in legend.iter(SVG + "use")}
    uses = [use for use in root.iter(SVG + "use") if use not in keys and figures._MEASURED in use.get("style", "")]
    return [(float(use.get("x")), float(use.get("y"))) for use in uses]


def with_steps(*steps):
    return profile(search=dataclasses.replace(profile().search, search=RatioSearch(list(steps), 1)))


def test_balance_draws_the_steps_where_they_were_measured():
    found = with_steps(Step(5, 50.0, 100.0), Step(7, 100.0, 50.0))
    (left, top), (right, bottom) = measured_places(figures.balance(found))
    assert left < right
    assert top < bottom


@pytest.mark.parametrize("load", [1500.0, 1e9, float("inf")])
def test_balance_draws_loading_that_does_not_limit_at_the_edge(load):
    found = with_steps(Step(5, 50.0, 100.0), Step(7, load, 50.0))
    drawn = figures.balance(found)
    (first, _), (second, _) = measured_places(drawn)
    width = float(ElementTree.fromstring(drawn).get("viewBox").split()[2])
    assert first < 0.5 * width < 0.8 * width < second < width


# ---- Terminal --------------------------------------------------------------------------------------------------------


@each_profile
@pytest.mark.parametrize(
    ("width", "encoding", "terminal"),
    [  # each with each
        (24, "utf-8", True),
        (24, "ascii", False),
        (80, "utf-8", False),
        (80, "ascii", True),
        (200, "utf-8", True),
        (200, "ascii", False),
    ],
)
def test_terminals_show_all(found, width, encoding, terminal):
    shown = printed(found, width, encoding, terminal)
    flat = "".join(shown.split())

    def has(text):
        return "".join(text.encode(encoding, "backslashreplace").decode(encoding).split()) in flat

    assert has(tables.command(found) or "")
    assert ("dali-l3convert" in flat) == (found.advice == "convert")
    for sentence in tables.recommendation(found):
        assert has(sentence)
    for table in tables.all_tables(found):
        for text in (table.title, *table.notes, *(cell for row in table.rows for cell in row)):
            assert has(text)
    assert ("The dataset as written" in shown) == (found.written is not None)


def test_the_command_is_one_line_on_any_terminal():
    found = profile("/data/" + 30 * "a folder of a long name/")
    assert tables.command(found) in printed(found, width=40, terminal=True)


def test_tables_stay_within_a_narrow_terminal_and_whole_in_a_pipe():
    def longest(table, **console):
        lines = printed(PROFILES["everything"], **console).splitlines()
        return max(len(line) for line in lines if "dali-l3 convert" not in line)

    assert longest(tables.formats, width=40, terminal=True) <= 40
    rows = [line.split() for line in printed(PROFILES["everything"], width=40).splitlines()]
    assert any(row[:2] == ["bmp", "6.20"] for row in rows)


def test_control_codes_do_not_reach_the_terminal():
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", printed(PROFILES["hostile names"], terminal=True))


def test_names_are_not_taken_for_markup():
    assert "[red]" in printed(PROFILES["hostile names"], markup=True)


# ---- Words -----------------------------------------------------------------------------------------------------------


def test_the_command_is_one_that_a_shell_takes():
    arguments = shlex.split(tables.command(profile("/data/it's <here>")))
    assert arguments[:4] == ["dali-l3", "convert", "/data/it's <here>", "DST"]
    assert arguments[4:] == ["--mix", str(profile().recommendation)]


def test_the_command_is_one_that_a_shell_takes_whatever_the_bytes_of_a_name():
    words = tables.command(profile(HOSTILE)).replace("dali-l3 convert", r"printf '%s\0'")
    assert words.isprintable()
    shown = subprocess.run(["bash", "-c", words], stdout=subprocess.PIPE, check=True).stdout.split(b"\0")
    assert shown[:3] == [os.fsencode(HOSTILE), b"DST", b"--mix"]


def with_mix(weights, throughput=120.0, limit="load", **others):
    seconds = dict.fromkeys(("load", "decode", "cpu", "copy"), 0.0) | {limit: 1 / throughput}
    mix = Mix(weights, Prediction(0.25, seconds), 8 * 10**9)
    return profile(choice=Choice(mix, 0.1, [mix]), gain=throughput / 37, **others)


def test_the_recommendation_in_words():
    first, second, third = tables.recommendation(with_mix({"png": 3, "bmp": 7}))
    assert first == (
        "Store 3 of 10 images as png and 7 as bmp, and read them with fn.readers.liquid and 1.0 GB of memory: "
        "120 images/s are predicted, 3.2 times today's 37.0."
    )
    assert second == "Then loading will set the pace, and 25% of each batch will come from memory."
    assert third == "The dataset will take about 8.0 GB, 1.60x the 5.0 GB that it takes now."


def assert_says_nothing_else(found, sentence):
    """The recommendation is this sentence; there is no mix in the table, and no command anywhere."""
    assert found.advice == "stay"
    assert tables.recommendation(found) == [sentence]
    assert tables.command(found) is None
    assert parse_strictly(report.to_json(found))["command"] is None
    assert not any("recommended" in row for row in tables.mixes(found).rows)
    assert "dali-l3 convert" not in printed(found)


def test_a_dataset_that_is_fine_may_stay():
    assert_says_nothing_else(
        with_mix({"png": 1}, 38.0),
        "The dataset may stay as it is: the best mix, png, would reach 38.0 images/s, 1.0 times today's 37.0, "
        "and take 1.60x the space.",
    )


def test_where_the_training_step_limits_nothing_is_recommended():
    assert_says_nothing_else(
        with_mix({"png": 3, "bmp": 7}, diagnosis=PROFILES["a step"].diagnosis),
        "The training step limits, at 37.0 images/s: storing the dataset otherwise gains nothing.",
    )


def test_what_is_too_large_is_not_recommended():
    def within(size):
        return with_mix({"png": 3, "bmp": 7}, conditions=dataclasses.replace(CONDITIONS, max_bytes=size))

    assert_says_nothing_else(
        within(8 * 10**9 - 1), "No mix takes as little as 8.0 GB: the smallest, png:3,bmp:7, takes 8.0 GB."
    )
    assert within(8 * 10**9).advice == "convert"


def test_files_that_are_fast_as_they_are_need_the_reader_alone():
    found = with_mix({"source": 1})
    assert found.advice == "read"
    assert tables.recommendation(found)[0].startswith("Read the files as they are with fn.readers.liquid and 1.0 GB")
    assert tables.command(found) is None
    (row,) = tables.mixes(dataclasses.replace(found, mixes=[found.recommendation])).rows
    assert (row[0], row[-1]) == ("source", "recommended")


def test_every_mix_has_its_growth_beside_it():
    found = profile()
    assert tables.mixes(found).columns[5] == "growth"
    growth = {row[0]: row[5] for row in tables.mixes(found).rows}
    assert growth["png"] == f"{2000 * 2.6e6 / 5e9:.2f}x"
    assert growth["bmp"] == f"{2000 * 6.2e6 / 5e9:.2f}x"


def test_choices_have_their_speed_and_size_beside_them():
    def mix(weights, speed, size):
        return Mix(weights, Prediction(0.25, dict.fromkeys(("load", "decode", "cpu", "copy"), 1 / speed)), size)

    front = [mix({"png": 1}, 50.0, 10**9), mix({"png": 8, "bmp": 2}, 95.0, 2 * 10**9), mix({"bmp": 1}, 100.0, 10**10)]
    found = profile(choice=Choice(front[1], 0.1, front))
    assert "The fastest mix, bmp, would reach 100 images/s and take 10.0 GB." in tables.recommendation(found)
    table = tables.choices(found)
    assert table.rows == [
        ("png", "50.0", "50%", "1.0 GB", "0.200x", ""),
        ("png:8,bmp:2", "95.0", "95%", "2.0 GB", "0.400x", "recommended"),
        ("bmp", "100", "100%", "10.0 GB", "2.00x", ""),
    ]
    assert "the smallest within 10% of the fastest" in table.notes[1]


def test_a_gain_within_the_spread_of_the_measurements_is_none():
    seconds = dict.fromkeys(("load", "decode", "cpu", "copy"), 1 / 50)
    for spread, advice in ((0.2, "convert"), (0.4, "stay")):
        mix = Mix({"bmp": 1}, Prediction(0.25, seconds), 10**9, spread)
        assert profile(choice=Choice(mix, 0.1, [mix]), gain=50 / 37).advice == advice
    noisy = dataclasses.replace(stage("disk", 37.0), throughput=Throughput(37.0, 22.0, 52.0))
    assert profile(diagnosis=Diagnosis([noisy], "disk", []), gain=50 / 37).advice == "stay"


def test_the_training_step_bounds_the_promise():
    diagnosis = dataclasses.replace(PROFILES["a step"].diagnosis, limit="decode")
    assert "The training step takes 50.0 images/s at most, 1.4 times today's." in tables.recommendation(
        with_mix({"png": 1}, diagnosis=diagnosis)
    )
    assert len(tables.recommendation(with_mix({"png": 1}, 45.0, diagnosis=diagnosis))) == 3


def test_lossy_formats_are_called_so():
    found = with_mix({"jpeg@95": 1}, formats={"jpeg@95": format_profile(JPEG, psnr=41.5)})
    assert tables.recommendation(found)[-1] == "jpeg@95 loses detail: its PSNR is 41.5 dB."


def test_the_search_tells_where_it_went():
    steps = [Step(5, 50.0, 90.0), Step(7, 80.0, 70.0), Step(6, 60.0, 80.0)]
    pair = dataclasses.replace(profile().search, search=RatioSearch(steps, 2), agrees=False)
    table = tables.search(pair)
    assert [(row[0], row[-1]) for row in table.rows] == [
        ("5:5", "halved, toward png"),
        ("7:3", "halved, toward bmp, fastest"),
        ("6:4", "neighbour"),
    ]
    assert "7:3" in table.notes[0]
    assert "they do not" in table.notes[0]


@pytest.mark.parametrize(("others", "told"), [(0.09, False), (0.42, True)])
def test_a_busy_machine_is_told(others, told):
    found = PROFILES["everything"]
    disturbed = dataclasses.replace(found.formats["bmp"], others=others)
    notes = tables.formats(dataclasses.replace(found, formats=found.formats | {"bmp": disturbed})).notes
    warning = f"Other processes took up to {others:.0%} of the CPUs meanwhile: these speeds may be too low"
    assert any(warning in note for note in notes) == told


def test_what_cannot_be_held_is_told():
    found = PROFILES["everything"]
    assert "jpeg@95 cannot hold all images of the sample: l3-fast took the place of 3." in tables.formats(found).notes
    assert tables.quality(found).notes == ["webp@75 cannot hold all images of the sample: the figures are of 47."]
    failures = tables.overview(found).notes
    assert failures[0].endswith("(12):")
    assert failures[1] == "/data/0.png: damaged PNG file"
    assert failures[-1] == "and 2 more"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0123, "0.0123"), (3.4, "3.40"), (99.94, "99.9"), (99.96, "100"), (1234.5, "1234"), (float("inf"), "no limit")],
)
def test_speeds_have_three_digits(value, text):
    assert tables._speed(value) == text


# ---- Progress --------------------------------------------------------------------------------------------------------


def test_progress_in_a_pipe_is_a_line_for_each_thing():
    text = io.StringIO()
    with report.Progress(Console(file=text)) as progress:
        for done in range(3):
            progress("encoding the sample", done, 2)
        progress("measuring png", 0, 1)
    assert text.getvalue().splitlines() == ["encoding the sample", "measuring png"]


def test_progress_on_a_terminal_is_a_bar_that_goes():
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    with report.Progress(console) as progress:
        progress("encoding the sample", 1, 2)
        progress._bar.refresh()
    assert "encoding the sample" in text.getvalue()
    assert "1/2" in text.getvalue()
    assert text.getvalue().endswith("\x1b[2K")  # the line is erased
