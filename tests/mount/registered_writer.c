/* Writes standard input to a file through io_uring's table of registered files, after the descriptor was closed: the
   kernel reports no close of the writer. usage: registered_writer FILE BYTES */
/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check(long result, const char* what) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, strerror((int)-result));
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const unsigned bytes = (unsigned)strtoul(argv[2], NULL, 10);
  char* const buffer = malloc(bytes);
  if (buffer == NULL || fread(buffer, 1, bytes, stdin) != bytes) return 2;
  int fd = open(argv[1], O_WRONLY | O_TRUNC);
  if (fd < 0) perror(argv[1]);
  if (fd < 0) return 1;
  struct io_uring ring;
  check(io_uring_queue_init(4, &ring, 0), "io_uring_queue_init");
  check(io_uring_register_files(&ring, &fd, 1), "io_uring_register_files");
  check(close(fd), "close");
  for (unsigned done = 0; done < bytes;) {
    struct io_uring_sqe* const request = io_uring_get_sqe(&ring);
    io_uring_prep_write(request, 0, buffer + done, bytes - done, done);
    request->flags |= IOSQE_FIXED_FILE;
    check(io_uring_submit(&ring), "io_uring_submit");
    struct io_uring_cqe* answer = NULL;
    check(io_uring_wait_cqe(&ring, &answer), "io_uring_wait_cqe");
    check(answer->res > 0 ? answer->res : -1, "write");
    done += (unsigned)answer->res;
    io_uring_cqe_seen(&ring, answer);
  }
  check(io_uring_unregister_files(&ring), "io_uring_unregister_files");
  io_uring_queue_exit(&ring);
  free(buffer);
  return 0;
}
