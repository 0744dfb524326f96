// Any sequence of operations on names, with remounts in between, does what a simple model does.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "memory_volume.h"
#include "namespace_model.h"

namespace rc {

template <>
struct Arbitrary<mdfs::volume::Op> {
  static Gen<mdfs::volume::Op> arbitrary() {
    using mdfs::volume::Op;
    const auto kind = gen::map(gen::inRange(0, 32), [](int n) {
      // Remounts and syncs are dear, so they are rare.
      return static_cast<mdfs::volume::OpKind>(n < 30 ? n % 12 : n - 30 + 12);
    });
    return gen::build<Op>(gen::set(&Op::kind, kind), gen::set(&Op::directory), gen::set(&Op::name),
                          gen::set(&Op::other_directory), gen::set(&Op::other_name),
                          gen::set(&Op::size, gen::inRange<std::uint16_t>(0, 9000)));
  }
};

}  // namespace rc

namespace mdfs::volume {
namespace {

RC_GTEST_PROP(NamespacePropertyTest, TheVolumeDoesWhatTheModelDoes, ()) {
  const auto ops = *rc::gen::resize(200, rc::gen::arbitrary<std::vector<Op>>());
  SeededEnvironment environment(5);
  const test::MemoryDisks disks = test::format_memory_disks(3, 16u << 20, environment);
  NamespaceModel model;
  std::unique_ptr<Volume> volume;
  const auto mount = [&] {
    if (volume) RC_ASSERT(volume->close().ok());
    volume.reset();
    auto opened = test::open_volume(test::borrowed(disks), test::quiet_options(), environment);
    RC_ASSERT(opened.ok());
    volume = std::move(*opened);
  };
  const auto compare = [&] {
    const auto tree = test::read_tree(*volume);
    if (!tree.ok()) RC_FAIL(tree.error().message());
    const test::Tree expected = model.tree();
    for (const auto& [path, seen] : expected)
      if (!tree->contains(path) || tree->at(path) != seen) RC_FAIL("differs: " + path);
    RC_ASSERT(tree->size() == expected.size());
    RC_ASSERT(test::find_inconsistency(*volume, false) == "");
  };
  mount();
  for (const Op& op : ops) {
    if (op.kind == OpKind::kRemount) {
      mount();
      compare();
    }
    const std::string wrong = model.apply(op, *volume);
    if (!wrong.empty()) RC_FAIL(wrong);
  }
  compare();
  mount();
  compare();
}

}  // namespace
}  // namespace mdfs::volume
