// The control channel of a mounted volume: a Unix socket in the runtime directory, one line for each message.
//
// A client sends "wait-end"; when the daemon has put everything on the disks it answers "ok" or "error TEXT" and ends.
// Lines "note TEXT" may come before: the report of modelled disks.
// "state" is answered with "mounted" or, once the file system is unmounted and is being written, "ending".
// Everything else is a change of the volume. The daemon carries out changes one after another: a line with the name,
// further lines of the change, and descriptors beside them (of disks). The answer is "done TEXT" or "failed CTEXT", C
// being a letter for the error code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/uuid.h"
#include "device/unique_fd.h"
#include "fuse/privileges.h"
#include "fuse/work_queue.h"

namespace mdfs::fuse {

// /run/mdfs/UUID for root, $XDG_RUNTIME_DIR/mdfs/UUID for others.
Result<std::string> runtime_directory(const Uuid& volume);
// Removes the directory if it is empty. That of root stays after the end of a daemon, which may not remove it.
void remove_runtime_directory(const Uuid& volume);

struct ControlRequest {
  std::vector<std::string> lines;  // one at least
  std::vector<device::UniqueFd> descriptors;
};
// Carries out a change and returns a text for the client. Called by one thread, which may wait.
using ControlHandler = std::function<Result<std::string>(ControlRequest request)>;

// The daemon's side. Makes the directory and the socket, which only the owner and root may use. Removes them at the
// end, the directory if the process has the right.
class ControlServer {
 public:
  // Lets clients connect; serve() then answers them. The directory of the volume belongs to `owner`, which may differ
  // from the caller. kBusy: another daemon serves a volume of this UUID. kNotFound: there is no runtime directory.
  static Result<std::unique_ptr<ControlServer>> listen(const Uuid& volume, const Identity& owner);
  // Call once. Its threads have the rights that the caller has then.
  void serve(ControlHandler handler);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Notes that the mount is gone and only writing remains. Any thread.
  void announce_end() { ending_ = true; }
  // Returns when the handler has ended and will not be called again.
  void stop_changes();
  // Answers all clients that wait for the end, and stops serving. `notes`: lines to show, each with its newline.
  void finish(const Status& outcome, const std::string& notes = {});

 private:
  static constexpr std::size_t kMaxClients = 64;

  ControlServer(std::string path, device::UniqueFd directory, device::UniqueFd listener, device::UniqueFd wake)
      : path_(std::move(path)),
        directory_(std::move(directory)),
        listener_(std::move(listener)),
        wake_(std::move(wake)) {}
  void serve_clients();
  // kGoes: the client has gone, or sent an invalid line. kHanded: its change is queued, and the queue answers and
  // closes the client.
  enum class Client : std::uint8_t { kStays, kWaits, kGoes, kHanded };
  Client read_request(int client);
  Client hand_on(int client, ControlRequest request);

  const std::string path_;  // of the directory
  const device::UniqueFd directory_;
  device::UniqueFd listener_;
  const device::UniqueFd wake_;         // eventfd
  ControlHandler handler_;              // set before there are threads
  std::mutex changes_mutex_;            // guards changes_
  std::unique_ptr<WorkQueue> changes_;  // null: no further changes
  std::atomic<bool> ending_{false};
  std::thread thread_;
  std::vector<int> waiting_;  // of the thread, then of finish()
};

// The client's side, connected to a daemon.
class ControlClient {
 public:
  // kNotFound: no daemon of this volume listens.
  static Result<ControlClient> connect(const Uuid& volume);
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ~ControlClient();

  // True if the daemon's mount is gone already. kBusy: it has not answered for 15 seconds.
  Result<bool> is_ending();
  // Requests a change and waits for it. Returns the daemon's text, or its error.
  Result<std::string> change(const std::vector<std::string>& lines, const std::vector<int>& descriptors);
  // Requests a message at the end; then, after the unmounting, waits for it.
  Status ask_for_end();
  Status wait_for_end(const std::function<void(const std::string& line)>& note);

 private:
  explicit ControlClient(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace mdfs::fuse
