// The web server, on cpp-httplib: a module that is loaded by `mdfs serve`.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <optional>
#include <semaphore>

#include "mdfs/version.h"
#include "serve/connection.h"
#include "serve/http_head.h"
#include "serve/pages.h"
#include "serve/serve_module.h"
#include "serve/web_text.h"
#include "serve/web_tree.h"

namespace mdfs::serve {
namespace {

constexpr std::size_t kConnections = 64;  // at once, a thread each; others wait in the kernel
constexpr std::size_t kRequests = 1000;   // of a connection
constexpr std::size_t kMaxBodyBytes = 64 << 10;
constexpr std::size_t kPieceBytes = 256 << 10;

// Accepts a connection when a thread is free for it.
class Connections final : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> connection) override {
    free_.acquire();
    pool_.enqueue([this, connection = std::move(connection)] {
      connection();
      free_.release();
    });
  }
  void shutdown() override { pool_.shutdown(); }

 private:
  httplib::ThreadPool pool_{kConnections};
  std::counting_semaphore<> free_{kConnections};
};

void fail(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain; charset=utf-8");
}

void fail_with(httplib::Response& response, int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case ENAMETOOLONG:
    case EINVAL:
      return fail(response, 404, "not found");
    case EACCES:
    case EPERM:
      return fail(response, 403, "permission denied");
    case EFBIG:
      return fail(response, 403, "the window is larger than the mount allows");
    case EAGAIN:
    case ENOSPC:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return fail(response, 503, "out of resources");
    default:
      return fail(response, 500, "the file cannot be read");
  }
}

// The first bytes of a file that is a short text; empty if it cannot be read.
std::string small_text(const Descriptor& fd) {
  std::string text(64 << 10, '\0');
  const ssize_t count = fd.get() < 0 ? 0 : ::pread(fd.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// The text of info.json, if the directory has the views of an image that can be zoomed into.
std::optional<std::string> picture_info(int root, const std::string& path, const Listing& listing) {
  const auto is_zoomable = [](const Entry& entry) { return entry.name == "dz.dzi" || entry.name == "plane"; };
  if (!is_of_views(path) || std::none_of(listing.entries.begin(), listing.entries.end(), is_zoomable)) return {};
  const std::string text = small_text(open_below(root, path + "info.json", O_RDONLY).fd);
  return text.empty() ? std::nullopt : std::optional(text);
}

// `query`: empty, or with its question mark.
void send_directory(int root, const std::string& path, const std::string& query, httplib::Response& response) {
  if (!path.ends_with('/')) {
    // Not "//host": slashes at the begin are one.
    const std::string to = "/" + url_path(path.substr(std::min(path.find_first_not_of('/'), path.size()))) + "/";
    return response.set_redirect(to + query, 301);
  }
  Opened opened = open_below(root, path, O_RDONLY | O_DIRECTORY);
  if (opened.fd.get() < 0) return fail_with(response, opened.error);
  const Listing listing = list(std::move(opened.fd));
  if (listing.error != 0) return fail_with(response, listing.error);
  response.set_header("Cache-Control", "no-cache");
  response.set_header("Vary", "Accept-Encoding");
  // The pages load and run nothing but their own files.
  response.set_header("Content-Security-Policy",
                      "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'");
  const std::optional<std::string> info = can_zoom() ? picture_info(root, path, listing) : std::nullopt;
  response.set_content(
      info ? image_page(path, *info, listing.entries) : directory_page(path, listing.entries, listing.more),
      "text/html; charset=utf-8");
}

bool is_unchanged(const httplib::Request& request, const std::string& tag, std::time_t changed) {
  if (request.has_header("If-None-Match")) return has_tag(request.get_header_value("If-None-Match"), tag);
  if (!request.has_header("If-Modified-Since")) return false;
  const auto since = parse_http_date(request.get_header_value("If-Modified-Since"));
  return since && changed <= *since;
}

// False if the client asks for a version that is not this one. Without a tag the version is not known.
bool is_wanted(const httplib::Request& request, const std::string& tag, std::time_t changed) {
  if (request.has_header("If-Match")) return has_tag(request.get_header_value("If-Match"), tag, false);
  const auto since = parse_http_date(request.get_header_value("If-Unmodified-Since"));
  return !since || changed <= *since;
}

// Which bytes to send. If-Range: a part only of the version that the client has.
ByteSpan asked_for(const httplib::Request& request, const std::string& tag, std::uint64_t size) {
  if (!request.has_header("Range")) return {};
  if (request.has_header("If-Range") && (tag.empty() || request.get_header_value("If-Range") != tag)) return {};
  return parse_range(request.get_header_value("Range"), size);
}

void send_bytes(Descriptor fd, const ByteSpan& span, const std::string& type, httplib::Response& response) {
  if (span.count == 0) return response.set_content("", type);
  const auto file = std::make_shared<Descriptor>(std::move(fd));
  const auto buffer = std::make_shared<std::string>();
  response.set_content_provider(
      span.count, type,
      [file, buffer, first = span.first](std::size_t offset, std::size_t length, httplib::DataSink& to) {
        buffer->resize(std::min(length, kPieceBytes));
        const ssize_t count = ::pread(file->get(), buffer->data(), buffer->size(), static_cast<off_t>(first + offset));
        // Bytes that are missing, or an error: the connection ends, so that the client sees a part.
        return count > 0 && to.write(buffer->data(), static_cast<std::size_t>(count));
      });
}

void answer(int root, const httplib::Request& request, httplib::Response& response) {
  if (const auto asset = find_asset(request.path)) {
    response.set_header("Cache-Control", "no-cache");
    response.set_header("Vary", "Accept-Encoding");
    return response.set_content(asset->text.data(), asset->text.size(), std::string(asset->type));
  }
  // The time before the bytes: a change in between makes the client ask again.
  const Opened before = open_below(root, request.path, O_PATH);
  struct stat old {};
  if (before.fd.get() < 0) return fail_with(response, before.error);
  if (::fstat(before.fd.get(), &old) != 0) return fail_with(response, errno);
  if (S_ISDIR(old.st_mode)) {
    const std::size_t query = std::min(request.target.find('?'), request.target.size());
    return send_directory(root, request.path, request.target.substr(query), response);
  }
  if (!S_ISREG(old.st_mode) || request.path.ends_with('/')) return fail_with(response, ENOENT);
  Opened opened = open_below(root, request.path, O_RDONLY);
  struct stat now {};
  if (opened.fd.get() < 0) return fail_with(response, opened.error);
  // Pictures under win/ have their size when they are open.
  if (::fstat(opened.fd.get(), &now) != 0) return fail_with(response, errno);
  if (!S_ISREG(now.st_mode)) return fail_with(response, ENOENT);
  if (is_iiif_info(request.path)) {
    const bool secure = request.get_header_value("X-Forwarded-Proto") == "https";
    const std::string base = (secure ? "https://" : "http://") + request.get_header_value("Host");
    response.set_header("Cache-Control", "no-cache");
    return response.set_content(iiif_info_at(base, request.path, small_text(opened.fd)), "application/json");
  }
  const auto size = static_cast<std::uint64_t>(now.st_size);
  // The time of the last change of anything: tools that copy files set the time of their bytes back.
  const bool steady = old.st_ctim.tv_sec == now.st_ctim.tv_sec && old.st_ctim.tv_nsec == now.st_ctim.tv_nsec;
  const std::string tag = steady ? entity_tag(now.st_ctim, size) : "";
  if (!is_wanted(request, tag, now.st_mtim.tv_sec)) return fail(response, 412, "the file has changed");
  response.set_header("Accept-Ranges", "bytes");
  response.set_header("Cache-Control", "no-cache");
  if (steady) {
    response.set_header("ETag", tag);
    response.set_header("Last-Modified", http_date(now.st_mtim.tv_sec));
    if (is_unchanged(request, tag, now.st_mtim.tv_sec)) {
      response.status = 304;
      return;
    }
  }
  ByteSpan span = asked_for(request, tag, size);
  response.status = 200;
  if (span.kind == ByteSpan::Kind::kOutside) {
    response.set_header("Content-Range", fmt::format("bytes */{}", size));
    return fail(response, 416, "the range lies outside the file");
  }
  if (span.kind == ByteSpan::Kind::kPart) {
    response.status = 206;
    response.set_header("Content-Range", fmt::format("bytes {}-{}/{}", span.first, span.first + span.count - 1, size));
  } else {
    span = {ByteSpan::Kind::kWhole, 0, size};
  }
  send_bytes(std::move(opened.fd), span, content_type(request.path), response);
}

// Each request goes to the library as http_head.h has read it: the library reads a connection anew for each request, so
// that requests sent together are lost, does not read bodies, and refuses what must be ignored.
class Server final : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket);
    for (std::size_t left = kRequests; left > 0; --left) {
      RequestHead head;
      const std::string text = connection.next_head(head.refused);
      if (!text.empty()) head = parse_head(text);
      if (head.refused != 0) {
        connection.send(refusal(head.refused, !text.starts_with("HEAD "), http_date(std::time(nullptr))));
        break;
      }
      if (text.empty()) break;
      const bool is_last = head.is_last || left == 1 || head.body_bytes > kMaxBodyBytes;
      connection.give(std::move(head.text));
      bool closed = false;
      // Behind the library's own reading of ranges, which would cut the answer again.
      const auto add_range = [&head](httplib::Request& request) {
        if (head.range) request.set_header("Range", *head.range);
      };
      if (!process_request(connection, is_last, closed, add_range) || is_last || closed) break;
      if (!connection.skip(head.body_bytes)) break;
    }
    return true;
  }
};

// No disk and no file is at fault. Names that are not found leave no errno.
Error cannot_listen(int number, std::string where) {
  if (number == EADDRINUSE) return Error{Errc::kBusy, std::move(where) + ": another program listens there"};
  if (number == 0 || number == EADDRNOTAVAIL)
    return Error{Errc::kNotFound, std::move(where) + ": not an address of this machine"};
  return from_errno(number, std::move(where));
}

Status serve(const Options& options, const std::function<void(int port)>& listening) {
  Server server;
  server.new_task_queue = [] { return new Connections; };
  server.set_keep_alive_max_count(kRequests);  // in the answers
  server.set_keep_alive_timeout(kIdleSeconds);
  server.set_tcp_nodelay(true);
  // Not SO_REUSEPORT, the library's default: a second server would take half of the connections.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_default_headers(
      {{"Access-Control-Allow-Origin", "*"},
       {"Access-Control-Expose-Headers", "Accept-Ranges, Content-Length, Content-Range, Date, ETag, Last-Modified"},
       {"X-Content-Type-Options", "nosniff"}});
  server.set_pre_routing_handler([&options](const httplib::Request& request, httplib::Response& response) {
    if (request.method == "OPTIONS") {
      response.set_header("Allow", "GET, HEAD, OPTIONS");
      response.set_header("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS");
      response.set_header(
          "Access-Control-Allow-Headers",
          "Range, If-Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, Cache-Control");
      response.set_header("Access-Control-Max-Age", "86400");
      response.status = 204;
    } else if (request.method == "GET" || request.method == "HEAD") {
      answer(options.root, request, response);
    } else {
      response.set_header("Allow", "GET, HEAD, OPTIONS");
      fail(response, 405, "files are read only");
    }
    return httplib::Server::HandlerResponse::Handled;
  });
  int port = options.port;
  if (port == 0) {
    port = server.bind_to_any_port(options.host);
  } else if (!server.bind_to_port(options.host, port)) {
    port = -1;
  }
  if (port < 0) return cannot_listen(errno, fmt::format("{}:{}: listen", options.host, options.port));
  listening(port);
  if (!server.listen_after_bind()) return Error{Errc::kIo, "the server ended"};
  return {};
}

}  // namespace
}  // namespace mdfs::serve

extern "C" __attribute__((visibility("default"))) const mdfs::serve::Module mdfs_serve_module;
const mdfs::serve::Module mdfs_serve_module = {MDFS_VERSION_STRING, mdfs::serve::serve};
