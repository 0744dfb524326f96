// SVG to a file, PNG through rsvg-convert.
// SPDX-License-Identifier: Apache-2.0
#include "plot.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdio>

#include "support/chart.h"
#include "support/pending_file.h"

extern char** environ;

namespace mdfs::tools {
namespace {

// Waits for `rsvg-convert -o png svg`.
// Standard input and output of the program are files without a name and the new file: it opens nothing by name.
Status convert(const std::string& svg, PendingFile& png) {
  std::string program = "rsvg-convert";
  File source(::memfd_create("figure.svg", MFD_CLOEXEC), "the figure");
  if (source.fd() < 0) return from_errno(errno, source.name());
  MDFS_TRY(source.write_at(0, as_bytes(svg)));
  char* arguments[] = {program.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, source.fd(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, png.file().fd(), STDOUT_FILENO);
  pid_t child = 0;
  const int problem = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem == ENOENT)
    return Error{
        Errc::kNotSupported,
        fmt::format("{}: rsvg-convert (package librsvg2-bin) makes PNG; a .svg file needs no program", png.target())};
  if (problem != 0) return from_errno(problem, program);
  int status = 0;
  if (waitpid(child, &status, 0) < 0) return from_errno(errno, program);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return Error{Errc::kIo, fmt::format("{}: {} failed", png.target(), program)};
  return {};
}

}  // namespace

Status write_figure(const sim::Figure& figure, const std::string& path) {
  const std::string svg = to_svg(figure);
  if (path.ends_with(".svg")) return write_text_file(path, svg, true);
  if (!path.ends_with(".png")) return Error{Errc::kUsage, fmt::format("{}: a figure is a .svg or a .png file", path)};
  MDFS_TRY_ASSIGN(PendingFile png, PendingFile::create(path, true));
  MDFS_TRY(convert(svg, png));
  return png.commit();
}

sim::Figure utilization_figure(const std::string& title, const std::vector<sim::ResourceUse>& use) {
  sim::Figure figure{.title = title, .x_label = "", .y_label = "utilization, %", .series = {}};
  sim::Series bars{.name = "", .style = sim::Series::Style::kBars, .x = {}, .y = {}};
  for (const sim::ResourceUse& resource : use) {
    bars.x.push_back(static_cast<double>(figure.x_names.size()));
    bars.y.push_back(resource.mean_utilization() * 100);
    figure.x_names.push_back(fmt::format("{} ({})", resource.name, resource.instances.size()));
  }
  figure.series.push_back(std::move(bars));
  figure.y_max = 100;
  return figure;
}

sim::Figure delay_figure(const std::string& title, const std::vector<double>& delays_s) {
  sim::Figure figure{.title = title, .x_label = "delay, ms", .y_label = "cumulative probability", .series = {}};
  sim::add_distribution(figure, "", delays_s, 0);
  return figure;
}

}  // namespace mdfs::tools
