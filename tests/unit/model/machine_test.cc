// Machine files: the shipped ones, the errors of bad ones, topology and hash.
// SPDX-License-Identifier: Apache-2.0
#include "model/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace mdfs::model {
namespace {

constexpr std::string_view kSmall = R"(name = "small"
[[resource]]
name = "disk"
count = "disks"
[[stage]]
name = "read"
resource = "disk"
cost = ["10 ms", "full / 4 MB/s"]
)";

std::string replaced(std::string_view what, std::string_view with) {
  std::string text(kSmall);
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(MachineTest, EveryShippedMachineIsReadUnderItsName) {
  const std::vector<std::string_view> expected = {
      "gigaview-t800",   "gigaview-t9000-004", "gigaview-t9000-000", "dec-cluster", "sparc-disk",      "raid3",
      "raid5",           "fixed-server",       "powerwall-san",      "sata-disk",   "sata-disk-zoned", "nvme",
      "sata-shelf-10gbe"};
  ASSERT_EQ(presets().size(), expected.size());
  for (const std::string_view name : expected) {
    const auto machine = find_machine(std::string(name));
    ASSERT_TRUE(machine.ok()) << machine.error().message();
    EXPECT_EQ(machine->name, name);
    EXPECT_FALSE(machine->description.empty()) << name;
  }
}

TEST(MachineTest, ErrorsNameFileLineAndField) {
  struct Case {
    std::string text;
    std::string place;
  };
  const std::vector<Case> cases = {
      {replaced("[\"10 ms\", \"full / 4 MB/s\"]", "10"), "m.toml:8: stage[0].cost: a number without a unit"},
      {replaced("10 ms", "10"), "m.toml:8: stage[0].cost: \"10\": a number without a unit"},
      {replaced("4 MB/s", "4 KB/s"), "m.toml:8: stage[0].cost: unit \"KB\" is ambiguous"},
      {replaced("resource = \"disk\"", "resource = \"disc\""),
       "m.toml:7: stage[0].resource: \"disc\" names no resource"},
      {replaced("count = \"disks\"", "count = 0"), "m.toml:4: resource[0].count: 0 is not in 1.."},
      {replaced("count = \"disks\"", "cuont = 4"), "resource[0].count: is missing"},
      {replaced("count = \"disks\"", "count = 4\ncolour = 3"), "m.toml:5: resource[0].colour: is not a field"},
      {replaced("name = \"small\"", "name = \"Small\""), "m.toml:1: name: a name is"},
      {replaced("name = \"small\"", "name = \"small\"\noutstanding = -1"), "m.toml:2: outstanding: -1 is not in"},
      {replaced("name = \"small\"", "name = \"small\"\nhit_ratio = 0.5"), "hit_ratio: no stage says when"},
      {replaced("name = \"small\"", "name = "), "m.toml:1: "},
      {"name = \"empty\"", "resource: a machine has one [[resource]] or more"},
      {replaced("\"10 ms\"", "\"head\""), "m.toml:8: stage[0].cost: \"head\" needs"},
      {replaced("full / 4 MB/s", "full / 4 MB/s .. 2 MB/s"), "m.toml:8: stage[0].cost: a rate that falls"},
      {replaced("name = \"small\"\n", "name = \"small\"\n[placement]\nfilled = 2\n"), "m.toml:3: placement.filled: "},
      {replaced("10 ms", "-1 ms"), "m.toml:8: stage[0].cost: \"-1 ms\" is negative; it must be at least 0"},
      {replaced("10 ms", "inf ms"), "m.toml:8: stage[0].cost: \"inf ms\" must be a finite number"},
      {replaced("10 ms", "-inf ms"), "m.toml:8: stage[0].cost: \"-inf ms\" must be a finite number"},
      {replaced("10 ms", "nan ms"), "m.toml:8: stage[0].cost: \"nan ms\" must be a finite number"},
      {replaced("10 ms", "1e400 ms"), "m.toml:8: stage[0].cost: \"1e400 ms\": the number is out of range"},
      {replaced("10 ms", "soon"), "m.toml:8: stage[0].cost: \"soon\" is not a cost: write a time (10 ms)"},
      {replaced("10 ms", "1e300 s"), "m.toml:8: stage[0].cost: \"1e300 s\" is above"},
      {replaced("4 MB/s", "1e-9 B/s"), "m.toml:8: stage[0].cost: \"1e-9 B/s\": a rate is from"},
      {replaced("name = \"small\"\n", "name = \"small\"\n[image]\nshape = \"big\"\n"), "m.toml:3: image.shape: "},
      {replaced("name = \"small\"\n", "name = \"small\"\n[image]\nshape = \"8x0\"\n"), "m.toml:3: image.shape: "},
      {replaced("name = \"small\"\n", "name = \"small\"\n[image]\nshape = \"8x8\"\nextent = \"2\"\n"),
       "m.toml:4: image.extent: has 1 axes"},
      {replaced("name = \"small\"\n", "name = \"small\"\n[image]\nextent = \"9999x9999\"\n"), "image.shape: "},
  };
  for (const Case& one : cases) {
    const auto machine = parse_machine(one.text, "m.toml");
    ASSERT_FALSE(machine.ok()) << one.text;
    EXPECT_NE(machine.error().where.find(one.place), std::string::npos)
        << machine.error().where << "\n  expected " << one.place;
  }
}

// The parser calls itself for each part of a name.
TEST(MachineFileTest, NamesOfManyPartsAreRefused) {
  for (const std::string_view part : {"a.", "a . ", R"("/".)", R"("\"".)", "'='.", "\"a\".b ."}) {
    std::string parts;
    while (parts.size() < 1'000'000) parts += part;
    for (const std::string& text :
         {"\n" + parts + "b = 1\n", "\n[" + parts + "b]\n", "\n[[" + parts + "b]]\n", "\nx = {" + parts + "b = 1}\n"}) {
      const auto machine = parse_machine(text, "m.toml");
      ASSERT_FALSE(machine.ok());
      EXPECT_NE(machine.error().where.find("m.toml:2: a name has more than"), std::string::npos)
          << part << ": " << machine.error().where;
    }
  }
  const std::string dots(2000, '.');
  for (const std::string& text : {"# " + dots + "\n", "description = \"\\\"" + dots + "\"\n",
                                  "description = '" + dots + "'\n", "description = \"\"\"\n\"" + dots + "\"\"\"\n"}) {
    const auto machine = parse_machine(text + std::string(kSmall), "m");
    EXPECT_TRUE(machine.ok()) << machine.error().where;
  }
}

// Of some of these the parser asks, where it looks for the end of a word, whether they are blanks, and looks them up
// beyond the end of a table: U+00A1 to U+0499, and others.
TEST(MachineFileTest, CharactersThatAreNotAsciiStandInQuotesOrComments) {
  const std::string mark = "\xef\xbb\xbf", letter = "\xc3\xa9";
  const auto error_of = [](const std::string& text) {
    const auto machine = parse_machine("\n" + text + "\n", "m.toml");
    return machine.ok() ? "accepted" : machine.error().where;
  };
  for (const std::string& text :
       {letter + " = 1", "a" + letter + "b = 1", "a =" + letter + "1", "[" + letter + "]", "a = [1, " + letter + "]"})
    EXPECT_EQ(error_of(text), "m.toml:2: characters that are not ASCII belong in quotes") << text;
  EXPECT_EQ(error_of("a = '" + letter + "'"),
            "m.toml:2: characters that are not ASCII belong in double quotes, not between apostrophes");
  EXPECT_EQ(error_of("a = \"\\" + letter + "\""), "m.toml:2: behind a backslash stands a character that is not ASCII");
  EXPECT_EQ(error_of("a = \"\xc3\""), "m.toml:2: bytes that are no UTF-8");
  for (const std::string& text : {"a = 0\"" + letter + "\"", "a = \"b\"\"" + letter + "\"", "a = -b.\"" + letter + "\"",
                                  "a\"" + letter + "\" = 1"})
    EXPECT_EQ(error_of(text).substr(0, 10), "m.toml:2: ") << text;
  struct Case {
    std::string text, description;
  };
  for (const auto& [text, description] : {Case{"\"" + letter + "\" # " + letter, letter},
                                          {"\"\"\"\n" + letter + "\"\"\"\"", letter + "\""},
                                          {"\"\"\"x\\ \n " + letter + "\"\"\"", "x" + letter},
                                          {"\"\\\"" + mark + "\xf0\x9f\x94\xac\"", "\"" + mark + "\xf0\x9f\x94\xac"}}) {
    const auto machine =
        parse_machine(mark + "# " + letter + "\ndescription = " + text + "\n" + std::string(kSmall), "m");
    ASSERT_TRUE(machine.ok()) << machine.error().where;
    EXPECT_EQ(machine->description, description);
  }
}

// Whatever stands in a file, it is read, or refused with its name, a line and a reason.
void expect_read_or_refused(const std::string& text) {
  const auto machine = parse_machine(text, "fuzz.toml");
  if (machine.ok()) {
    EXPECT_EQ(hash_text(*machine).size(), 16U);
    (void)topology(*machine, machine->disks);
    return;
  }
  EXPECT_TRUE(machine.error().where.starts_with("fuzz.toml:")) << machine.error().where << "\n" << text;
  EXPECT_GT(machine.error().where.size(), std::string("fuzz.toml:1: ").size()) << text;
}

TEST(MachineTest, DamagedFilesAreReadOrRefusedByLine) {
  std::mt19937 generator(7);
  const std::string letters = "abz019.-+/ \"'[]{}=#\n\t,()\\\x01\x80\xff";
  for (int turn = 0; turn < 4000; ++turn) {
    std::string text(presets()[generator() % presets().size()].toml);
    for (std::size_t changes = 1 + generator() % 6; changes > 0 && !text.empty(); --changes) {
      const std::size_t at = generator() % text.size();
      const std::size_t length = std::min<std::size_t>(generator() % 20, text.size() - at);
      switch (generator() % 5) {
        case 0:
          text[at] = letters[generator() % letters.size()];
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(generator() % text.size(), length));
          break;
        case 3:
          text.insert(at, std::to_string(generator() * (generator() % 2 == 0 ? 1ull : 1ull << 33)));
          break;
        default:
          text.resize(at);
      }
    }
    expect_read_or_refused(text);
  }
}

TEST(MachineTest, GarbageIsRefused) {
  std::mt19937 generator(8);
  for (int turn = 0; turn < 3000; ++turn) {
    std::string text(generator() % 200, ' ');
    for (char& c : text) c = static_cast<char>(generator());
    expect_read_or_refused(text);
  }
  for (const std::string& text :
       {std::string(100000, '['), "a = " + std::string(100000, '['), std::string(100000, '{'), std::string("\0x", 2),
        std::string("resource = 3\nstage = 4\nname = \"a\""), std::string("name = [1, 2]"), std::string("[=]"),
        std::string("[[ =\nname"), std::string("name = 2024-01-01"),
        std::string("name = \"a\"\nresource = [1]\nstage = [[1]]")})
    expect_read_or_refused(text);
}

TEST(MachineTest, AFileThatIsNotThereIsNotFound) {
  const auto machine = find_machine("no-such-machine.toml");
  ASSERT_FALSE(machine.ok());
  EXPECT_EQ(machine.error().code, Errc::kNotFound);
}

TEST(MachineTest, StagesOfWindowsStandOutside) {
  const std::string text = std::string(kSmall) + R"([[stage]]
name = "reply"
resource = "disk"
per = "window"
cost = "1 ms"
[[stage]]
name = "again"
resource = "disk"
cost = "1 ms"
)";
  EXPECT_FALSE(parse_machine(text, "m.toml").ok());
}

TEST(MachineTest, NeighbouringNodesShareALink) {
  const auto machine = find_machine("gigaview-t800").value();
  const Topology eight = topology(machine, 8);
  const std::vector<unsigned> expected = {0, 0, 1, 1, 2, 2, 3, 3};
  EXPECT_EQ(eight.of_disk[1], expected);
  EXPECT_EQ(topology(machine, 2).count, (std::vector<unsigned>{2, 2, 1}));
  EXPECT_EQ(topology(machine, 5).of_disk[1], (std::vector<unsigned>{0, 0, 1, 2, 3}));
  const auto nodes = find_machine("gigaview-t9000-000").value();
  EXPECT_EQ(topology(nodes, 12).of_disk[1], (std::vector<unsigned>{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}));
  EXPECT_EQ(topology(nodes, 12).of_disk[2], topology(nodes, 12).of_disk[1]);
}

TEST(MachineTest, RowOffsetsFollowTheNumberOfDisks) {
  const auto machine = find_machine("gigaview-t800").value();
  EXPECT_EQ(row_offset(machine, 1), 0U);
  EXPECT_EQ(row_offset(machine, 8), 3U);
  EXPECT_EQ(row_offset(machine, 12), 5U);
  EXPECT_EQ(row_offset(machine, 17), std::nullopt);
  EXPECT_EQ(row_offset(find_machine("gigaview-t9000-000").value(), 12), 4U);
}

TEST(MachineTest, TheHashChangesWithEveryProperty) {
  const auto machine = parse_machine(kSmall, "m").value();
  EXPECT_EQ(hash_text(machine), hash_text(parse_machine(kSmall, "other").value()));
  for (const auto& text : {replaced("10 ms", "11 ms"), replaced("4 MB/s", "4 MiB/s"), replaced("\"disks\"", "3"),
                           replaced("name = \"small\"", "name = \"small\"\ndisks = 2"),
                           replaced("name = \"small\"", "name = \"small\"\nplacement = { filled = 0.5 }")})
    EXPECT_NE(hash_text(parse_machine(text, "m").value()), hash_text(machine)) << text;
}

TEST(MachineTest, DisksSeeNoWindowsAndAskForAllAtOnce) {
  EXPECT_TRUE(as_disks(find_machine("fixed-server").value()).stages.empty());
  const Machine raid = find_machine("raid5").value();
  EXPECT_EQ(raid.outstanding, 1U);
  EXPECT_EQ(as_disks(raid).outstanding, 0U);
  EXPECT_EQ(as_disks(raid).stages, raid.stages);
}

TEST(MachineTest, SeeksGrowWithTheRootOfTheDistance) {
  const Head head{.track_s = 0.001, .stroke_s = 0.011, .rotation_s = 0, .capacity_bytes = 100};
  EXPECT_DOUBLE_EQ(head.seek_s(25), 0.006);
  EXPECT_DOUBLE_EQ(head.seek_s(-25), 0.006);
  EXPECT_DOUBLE_EQ(head.seek_s(1e9), 0.011);
}

}  // namespace
}  // namespace mdfs::model
