/* Loaded into the daemon (LD_PRELOAD): each reply to the kernel comes after a system call that no daemon makes. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

ssize_t writev(int fd, const struct iovec* parts, int count) {
  syscall(SYS_getpriority, PRIO_USER, 0);
  return syscall(SYS_writev, fd, parts, count);
}
