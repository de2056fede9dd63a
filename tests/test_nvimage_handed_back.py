"""What the GPU's codecs hand back to the CPU's, with a stand-in for library and GPU."""

from collections import Counter

import test_nvimage
from test_nvimage import done, jpeg, notes, picture

from cvcli.batch import lane
from cvcli.errors import DeviceError

DONE = ("decoded", "encoded")
fake, folder = test_nvimage.fake, test_nvimage.folder
chains_that_know_no_other_gpu = test_nvimage.chains_that_know_no_other_gpu


def test_memory_of_what_is_handed_back_is_counted_once(fake, folder):
    """The limit has room for a file's pixels and for nothing beside them."""
    source = folder({"a.jpg": jpeg(picture(1, (480, 640)))})
    fake.spoil_decoding = lambda count: [None] * count
    report = done(source, wishes={"format": "png"}, max_memory=2 * 480 * 640 * 3 + 1024)
    assert (report.images, sum(fake.decoded)) == (1, 1), report.rows[0].error


def test_batches_whose_lane_can_not_start_are_done_on_the_cpu(fake, folder, monkeypatch):
    def never(device, timing):
        raise DeviceError("cuda:0: no more events")

    monkeypatch.setattr(lane, "Event", never)
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(4)})
    report = done(source)
    assert (report.images, fake.decoded, fake.encoded) == (4, [], [])
    told = Counter(notes(report))
    assert told == {f"{what} on the CPU: cuda:0: no more events": 4 for what in DONE}
