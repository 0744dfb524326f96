"""Claims about indices, tried on plain arrays: what is read box by box is what NumPy selects."""
# SPDX-License-Identifier: Apache-2.0
import random
import unittest

import numpy as np

from mdfs._selection import result_shape, select, simple_window


def some_item(rng, length, arrays=True):
    """An index of one axis."""
    kind = rng.randrange(7 if arrays else 4)
    if kind == 0 and length > 0:
        return rng.randrange(-length, length)
    if kind == 1:
        return slice(None)
    if kind in (2, 3, 0):
        ends = [None] + list(range(-length - 2, length + 3))
        return slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 1, 2, 3, 7, -1, -2, -5]))
    if kind == 4:
        return np.array([rng.random() < 0.4 for _ in range(length)], bool)
    shape = rng.choice([(3,), (5,), (2, 2), (0,)]) if length > 0 else (0,)
    return np.array([rng.randrange(-length, length) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape)


def some_index(rng, shape, arrays=True):
    """At most one array, so that every index is one that NumPy takes; None and Ellipsis here and there."""
    used = rng.randrange(len(shape) + 1)
    items, with_array = [], False
    for length in shape[:used]:
        items.append(some_item(rng, length, arrays and not with_array))
        with_array = with_array or isinstance(items[-1], np.ndarray)
    if rng.random() < 0.3:
        items.append(Ellipsis)
    elif rng.random() < 0.2 and used > 1:  # the last ones count from the end
        items = [Ellipsis] + [some_item(rng, length, False) for length in shape[len(shape) - 1:]]
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        items.insert(rng.randrange(len(items) + 1), None)
    return items[0] if len(items) == 1 and rng.random() < 0.5 else tuple(items)


class SelectionTest(unittest.TestCase):
    def test_a_buffer_of_the_boxes_gives_what_numpy_selects(self):
        rng = random.Random(1)
        for _ in range(4000):
            shape = tuple(rng.choice([0, 1, 2, 5, 13, 40]) for _ in range(rng.randrange(1, 5)))
            array = np.arange(int(np.prod(shape))).reshape(shape)
            index = some_index(rng, shape)
            gaps = [rng.choice([1, 4, 16]) for _ in shape]
            whole = rng.choice([None, len(shape) - 1])
            selection = select(index, shape, gaps, whole)
            buffer = np.full(selection.lengths, -1)
            for place, box in selection.boxes():
                buffer[place] = array[tuple(slice(*run) for run in box)]
                if whole is not None:
                    self.assertIn(box[whole][1] - box[whole][0], (1, shape[whole]))
            with self.subTest(shape=shape, index=index, gaps=gaps):
                np.testing.assert_array_equal(buffer[selection.residual], array[index])
                self.assertEqual(result_shape(selection), array[index].shape)

    def test_several_arrays_select_as_in_numpy(self):
        rng = random.Random(2)
        array = np.arange(9 * 10 * 11 * 3).reshape(9, 10, 11, 3)
        for _ in range(500):
            items = [rng.choice([slice(None), slice(1, 5), rng.randrange(9), [1, 4, 0], [-1, 2, 2]]) for _ in range(4)]
            items[3] = rng.choice([slice(None), 1, 2, [0, 2, 1]])
            selection = select(tuple(items), array.shape, [4, 4, 4, 4], 3)
            buffer = np.full(selection.lengths, -1)
            for place, box in selection.boxes():
                buffer[place] = array[tuple(slice(*run) for run in box)]
            np.testing.assert_array_equal(buffer[selection.residual], array[tuple(items)], str(items))

    def test_a_usual_index_is_one_window_and_any_other_is_none(self):
        rng, usual = random.Random(3), 0
        for _ in range(4000):
            shape = tuple(rng.choice([0, 1, 2, 5, 13]) for _ in range(rng.randrange(1, 5)))
            array = np.arange(int(np.prod(shape))).reshape(shape)
            index = some_index(rng, shape)
            rank = len(shape) if len(shape) == 1 else rng.choice([len(shape), len(shape) - 1])
            found = simple_window(index, shape, rank)
            if found is None:
                continue
            usual += 1
            starts, lengths, kept = found
            box = array[tuple(slice(start, start + length) for start, length in zip(starts, lengths))]
            self.assertEqual(len(starts), rank)
            with self.subTest(shape=shape, index=index, rank=rank):
                np.testing.assert_array_equal(box.reshape(kept), array[index])
        self.assertGreater(usual, 300)
        for other in ([0], True, np.int64(1), None, Ellipsis, (0, 0, 0), 5, -6, slice(0, 4, 2), slice(3, 3), "a"):
            self.assertIsNone(simple_window(other, (5, 4), 2), other)

    def test_a_window_of_all_channels_is_as_usual_as_one_that_leaves_them_out(self):
        window = slice(1, 3), slice(2, 9)
        for channels in (slice(None), slice(0, 3), slice(-3, None)):
            self.assertEqual(simple_window((*window, channels), (5, 9, 3), 2), simple_window(window, (5, 9, 3), 2))
        for some in (slice(0, 2), slice(1, 3), slice(None, None, -1), 0):
            self.assertIsNone(simple_window((*window, some), (5, 9, 3), 2), some)

    def test_places_far_apart_are_not_read_with_all_between(self):
        selection = select([5, 90_000, 6], (100_000, 8), [64, 8])
        self.assertEqual(selection.runs, [[(5, 7), (90_000, 90_001)], [(0, 8)]])
        self.assertEqual(select((slice(0, 1000, 100),), (1000,), [64]).box_count, 10)
        self.assertEqual(select((slice(0, 1000, 3),), (1000,), [64]).runs, [[(0, 1000)]])

    def test_what_numpy_refuses_is_refused(self):
        for index in (5, -6, (0, 0, 0), (Ellipsis, Ellipsis), 1.5, "a", [1.5], [5], np.ones((5, 4), bool),
                      np.ones(4, bool), True, (slice(None), [9]), {}):
            with self.subTest(index=index), self.assertRaises(IndexError):
                select(index, (5, 4), [2, 2])


if __name__ == "__main__":
    unittest.main()
