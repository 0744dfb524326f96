// Which inodes the kernel may hold pages of.
// SPDX-License-Identifier: Apache-2.0
#include "fuse/filled_pages.h"

#include <gtest/gtest.h>

namespace mdfs::fuse {
namespace {

using Drop = FilledPages::Drop;

TEST(FilledPages, AFileThatIsNotReadThroughThePageCacheCostsNothing) {
  FilledPages pages;
  pages.note_fill(7, true);
  EXPECT_EQ(pages.begin_drop(8), Drop::kNothing);
}

TEST(FilledPages, WhileAReaderHasItOpenEachWriteDropsItsRange) {
  FilledPages pages;
  pages.note_fill(7, true);
  pages.note_fill(7, false);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(pages.begin_drop(7), Drop::kRange);
    pages.dropped(7);
  }
}

TEST(FilledPages, AfterItsReadersAllPagesAreDroppedOnce) {
  FilledPages pages;
  pages.note_fill(7, true);
  pages.note_closed(7);
  EXPECT_EQ(pages.begin_drop(7), Drop::kAll);
  EXPECT_EQ(pages.begin_drop(7), Drop::kAll) << "the first is not done yet";
  pages.dropped(7);
  pages.dropped(7);
  EXPECT_EQ(pages.begin_drop(7), Drop::kNothing);
}

TEST(FilledPages, APageThatIsFilledMeanwhileIsDroppedByTheNext) {
  FilledPages pages;
  pages.note_fill(7, true);
  pages.note_closed(7);
  EXPECT_EQ(pages.begin_drop(7), Drop::kAll);
  pages.note_fill(7, true);
  pages.dropped(7);
  EXPECT_EQ(pages.begin_drop(7), Drop::kRange);
  pages.dropped(7);
}

TEST(FilledPages, WhatTheKernelHasForgottenIsForgotten) {
  FilledPages pages;
  pages.note_fill(7, true);
  pages.note_closed(7);
  pages.forget(7);
  EXPECT_EQ(pages.begin_drop(7), Drop::kNothing);
}

}  // namespace
}  // namespace mdfs::fuse
