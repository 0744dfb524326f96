// The control channel of a mounted volume: a Unix socket in the runtime directory, one line a message.
//
// A client sends "wait-end"; when the daemon has put everything on the disks it answers "ok" or "error TEXT" and ends.
// Before that may come lines "note TEXT" for whoever reads: the report of modelled disks.
// "state" is answered with "mounted" or, once the file system is unmounted and is being written, "ending".
// Everything else is a change of the volume, which the daemon carries out, one after another: a line that says what,
// more lines as it wants, and descriptors beside them (of disks). It is answered with "done TEXT" or "failed CTEXT", C
// being a letter for the code of the error.
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
// If it is empty: that of root stays after the end of a daemon, which may not remove it.
void remove_runtime_directory(const Uuid& volume);

struct ControlRequest {
  std::vector<std::string> lines;  // one at least
  std::vector<device::UniqueFd> descriptors;
};
// Carries out a change; the text is for whoever asked. Called by one thread, which may wait.
using ControlHandler = std::function<Result<std::string>(ControlRequest request)>;

// The daemon's end. Makes the directory and the socket, which only the owner and root may use; takes them away at the
// end, the directory as far as the process may then.
class ControlServer {
 public:
  // From now on clients may connect; they are answered once serve() has been called. The directory of the volume
  // belongs to `owner`, who may be another user than the caller. kBusy: another daemon serves a volume of this UUID.
  // kNotFound: there is no runtime directory.
  static Result<std::unique_ptr<ControlServer>> listen(const Uuid& volume, const Identity& owner);
  // Once. Its threads are made with the rights that the caller has left.
  void serve(ControlHandler handler);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // The mount is gone; what is left to do is to write. Any thread.
  void announce_end() { ending_ = true; }
  // Returns when the handler works no more, and will not be called again.
  void stop_changes();
  // Answers all who wait for the end, and stops serving. `notes`: lines for people, each with its newline.
  void finish(const Status& outcome, const std::string& notes = {});

 private:
  static constexpr std::size_t kMaxClients = 64;

  ControlServer(std::string path, device::UniqueFd directory, device::UniqueFd listener, device::UniqueFd wake)
      : path_(std::move(path)),
        directory_(std::move(directory)),
        listener_(std::move(listener)),
        wake_(std::move(wake)) {}
  void serve_clients();
  // Goes: it has gone, or talks nonsense. Handed: its change is queued, and it is answered and closed there.
  enum class Client : std::uint8_t { kStays, kWaits, kGoes, kHanded };
  Client read_request(int client);
  Client hand_on(int client, ControlRequest request);

  const std::string path_;  // of the directory
  const device::UniqueFd directory_;
  device::UniqueFd listener_;
  const device::UniqueFd wake_;         // eventfd
  ControlHandler handler_;              // set before there are threads
  std::mutex changes_mutex_;            // guards changes_
  std::unique_ptr<WorkQueue> changes_;  // null: no more
  std::atomic<bool> ending_{false};
  std::thread thread_;
  std::vector<int> waiting_;  // of the thread, then of finish()
};

// The other end, connected to a daemon.
class ControlClient {
 public:
  // kNotFound: no daemon of this volume listens.
  static Result<ControlClient> connect(const Uuid& volume);
  ControlClient(ControlClient&& other) noexcept;
  ControlClient& operator=(ControlClient&&) = delete;
  ~ControlClient();

  // The daemon's mount is gone already.
  Result<bool> is_ending();
  // Asks for a change and waits for it; the daemon's text, or its error.
  Result<std::string> change(const std::vector<std::string>& lines, const std::vector<int>& descriptors);
  // Asks to be told of the end; then, after the unmounting, waits for it.
  Status ask_for_end();
  Status wait_for_end(const std::function<void(const std::string& line)>& note);

 private:
  explicit ControlClient(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace mdfs::fuse
