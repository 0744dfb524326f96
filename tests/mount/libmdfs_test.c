/* libmdfs on a mounted volume, from C and from many threads.
 *
 * usage: libmdfs_test DIRECTORY     (of a mounted volume)
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <mdfs/mdfs.h>
#include <mdfs/ondisk.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEIGHT 400
#define WIDTH 500
#define CHANNELS 3
#define THREADS 8
#define ROUNDS 60

static void check(int good, const char* what, int line) {
  if (good) return;
  fprintf(stderr, "line %d: %s (last error: %s)\n", line, what, mdfs_last_error());
  exit(1);
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

static unsigned char sample(unsigned y, unsigned x, unsigned c) { return (unsigned char)(y * 31 + x * 7 + c * 101); }

static void fill(mdfs_image* image) {
  unsigned char* bytes = malloc((size_t)HEIGHT * WIDTH * CHANNELS);
  CHECK(bytes != NULL);
  for (unsigned y = 0; y < HEIGHT; ++y)
    for (unsigned x = 0; x < WIDTH; ++x)
      for (unsigned c = 0; c < CHANNELS; ++c) bytes[(y * WIDTH + x) * CHANNELS + c] = sample(y, x, c);
  struct mdfs_ioc_window all;
  CHECK(mdfs_parse_window(image, "all", &all) == 0);
  CHECK(all.bytes == (uint64_t)HEIGHT * WIDTH * CHANNELS);
  CHECK(mdfs_write_window(image, &all, bytes, all.bytes, NULL) == (ssize_t)all.bytes);
  free(bytes);
}

static void strides(mdfs_image* image) {
  struct mdfs_ioc_window window;
  CHECK(mdfs_parse_window(image, "y50+30,x100+40", &window) == 0);
  /* Every second row of a wider buffer. */
  enum { kRow = 1000 };
  static unsigned char buffer[60 * kRow];
  memset(buffer, 0xee, sizeof buffer);
  const int64_t apart[2] = {2 * kRow, CHANNELS};
  CHECK(mdfs_read_window(image, &window, buffer, sizeof buffer, apart) == 30 * 40 * CHANNELS);
  for (unsigned row = 0; row < 60; ++row)
    for (unsigned i = 0; i < kRow; ++i) {
      const int inside = row % 2 == 0 && i < 40 * CHANNELS;
      const unsigned char expected = inside ? sample(50 + row / 2, 100 + i / CHANNELS, i % CHANNELS) : 0xee;
      CHECK(buffer[row * kRow + i] == expected);
    }
  CHECK(mdfs_read_window(image, &window, buffer, 100, apart) == -EINVAL);
  CHECK(mdfs_read_window(image, &window, buffer, 30 * 40 * CHANNELS - 1, NULL) == -EINVAL);
  /* Written back from the same places, one value changed. */
  buffer[0] = 1;
  CHECK(mdfs_write_window(image, &window, buffer, sizeof buffer, apart) == 30 * 40 * CHANNELS);
  unsigned char first = 0;
  CHECK(mdfs_parse_window(image, "y50,x100,c0", &window) == 0);
  CHECK(mdfs_read_window(image, &window, &first, 1, NULL) == 1 && first == 1);
  first = sample(50, 100, 0);
  CHECK(mdfs_write_window(image, &window, &first, 1, NULL) == 1);
}

static void* read_windows(void* argument) {
  mdfs_image* image = argument;
  unsigned seed = (unsigned)(size_t)&seed;
  unsigned char* bytes = malloc((size_t)HEIGHT * WIDTH * CHANNELS);
  CHECK(bytes != NULL);
  for (int round = 0; round < ROUNDS; ++round) {
    const unsigned y = (unsigned)rand_r(&seed) % HEIGHT, x = (unsigned)rand_r(&seed) % WIDTH;
    const unsigned height = 1 + (unsigned)rand_r(&seed) % (HEIGHT - y),
                   width = 1 + (unsigned)rand_r(&seed) % (WIDTH - x);
    char spec[100];
    snprintf(spec, sizeof spec, "%u,%u,%u,%u", x, y, width, height);
    struct mdfs_ioc_window window;
    CHECK(mdfs_parse_window(image, spec, &window) == 0);
    CHECK(mdfs_read_window(image, &window, bytes, window.bytes, NULL) == (ssize_t)window.bytes);
    for (unsigned i = 0; i < height * width * CHANNELS; ++i)
      CHECK(bytes[i] == sample(y + i / CHANNELS / width, x + i / CHANNELS % width, i % CHANNELS));
  }
  free(bytes);
  return NULL;
}

static void codecs(void) {
  uint8_t codec = 77;
  int8_t level = 77;
  CHECK(mdfs_parse_codec("zstd:7", &codec, &level) == 0 && codec == MDFS_CODEC_ZSTD && level == 7);
  CHECK(strcmp(mdfs_codec_text(codec, level), "zstd:7") == 0);
  CHECK(mdfs_parse_codec("raw", &codec, &level) == 0 && codec == MDFS_CODEC_RAW && level == 0);
  CHECK(strcmp(mdfs_codec_text(codec, level), "raw") == 0);
  CHECK(mdfs_parse_codec("zstd", &codec, &level) == 0 && codec == MDFS_CODEC_ZSTD && level == 3);
  CHECK(strcmp(mdfs_codec_text(200, 5), "codec 200") == 0);
  CHECK(mdfs_parse_codec("zstd:20", &codec, &level) == -EINVAL && codec == MDFS_CODEC_ZSTD && level == 3);
  CHECK(strstr(mdfs_last_error(), "codec 'zstd:20': must be raw or zstd") != NULL);
  CHECK(mdfs_parse_codec(NULL, &codec, &level) == -EINVAL);
}

static void levels(mdfs_image* image) {
  struct mdfs_ioc_geometry geometry;
  CHECK(mdfs_level_info(image, 1, &geometry) == 0);
  CHECK(geometry.shape[0] == (HEIGHT + 1) / 2 && geometry.shape[1] == (WIDTH + 1) / 2);
  CHECK(geometry.size_bytes == geometry.shape[0] * geometry.shape[1] * CHANNELS && geometry.stored_bytes == 0);
  CHECK(mdfs_level_info(image, 60, &geometry) == -ERANGE);
  struct mdfs_ioc_levels stored = {
      .struct_bytes = sizeof stored, .action = MDFS_IOC_LEVELS_SET, .count = 2, .reduction = MDFS_REDUCE_NEAREST};
  CHECK(mdfs_levels(image, &stored) == 0);
  CHECK(stored.count == 2 && stored.reduction == MDFS_REDUCE_NEAREST && stored.levels[1].extents > 0);
  struct mdfs_ioc_window window, below;
  CHECK(mdfs_parse_window(image, "l2,y3,x5", &window) == 0 && window.level == 2 && window.bytes == CHANNELS);
  CHECK(mdfs_parse_window(image, "y12,x20", &below) == 0 && below.level == 0);
  unsigned char sample[CHANNELS], wanted[CHANNELS];
  CHECK(mdfs_read_window(image, &window, sample, sizeof sample, NULL) == CHANNELS);
  CHECK(mdfs_read_window(image, &below, wanted, sizeof wanted, NULL) == CHANNELS);
  CHECK(memcmp(sample, wanted, sizeof sample) == 0);
  CHECK(mdfs_write_window(image, &window, sample, sizeof sample, NULL) == -EINVAL);
  stored = (struct mdfs_ioc_levels){.struct_bytes = sizeof stored, .action = MDFS_IOC_LEVELS_SET, .count = 60};
  CHECK(mdfs_levels(image, &stored) == -ERANGE && strstr(mdfs_last_error(), "fewer levels") != NULL);
}

/* The descriptor stays that of the open image when its name goes to another one. */
static void descriptor(const char* path, const struct mdfs_ioc_geometry* geometry) {
  char other[4096];
  CHECK((size_t)snprintf(other, sizeof other, "%s_other", path) < sizeof other);
  mdfs_image* image = NULL;
  struct stat before, after, named;
  CHECK(mdfs_open(path, O_RDONLY, &image) == 0);
  CHECK(mdfs_fd(image) >= 0 && fstat(mdfs_fd(image), &before) == 0);
  CHECK(mdfs_create(other, geometry, 0644) == 0 && rename(other, path) == 0);
  CHECK(fstat(mdfs_fd(image), &after) == 0 && stat(path, &named) == 0);
  CHECK(after.st_ino == before.st_ino && after.st_ino != named.st_ino && after.st_nlink == 0);
  CHECK(mdfs_fd(NULL) == -EINVAL);
  CHECK(mdfs_close(image) == 0);
}

static void errors(const char* directory, const char* path) {
  mdfs_image* image = NULL;
  CHECK(mdfs_open("/nowhere", O_RDONLY, &image) == -ENOENT && image == NULL);
  CHECK(mdfs_open("/proc/self/status", O_RDONLY, &image) == -ENOTTY);
  CHECK(strlen(mdfs_last_error()) > 0);
  CHECK(mdfs_open(directory, O_RDONLY, &image) < 0);
  CHECK(mdfs_open(path, O_WRONLY, &image) == -EINVAL);
  CHECK(mdfs_open(NULL, O_RDONLY, &image) == -EINVAL);
  CHECK(mdfs_open(path, O_RDONLY, &image) == 0);
  struct mdfs_ioc_window window;
  CHECK(mdfs_parse_window(image, "y0+401", &window) == -ERANGE);
  CHECK(mdfs_parse_window(image, "q1", &window) == -EINVAL);
  CHECK(mdfs_parse_window(image, "y1,x1", &window) == 0);
  unsigned char byte[CHANNELS] = {0};
  CHECK(mdfs_write_window(image, &window, byte, sizeof byte, NULL) == -EBADF);
  window.length[0] = 0;
  CHECK(mdfs_read_window(image, &window, byte, sizeof byte, NULL) == -EINVAL);
  CHECK(mdfs_close(image) == 0);
  CHECK(mdfs_close(NULL) == 0);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  CHECK(strcmp(mdfs_version(), MDFS_VERSION_STRING) == 0);
  char path[4096];
  snprintf(path, sizeof path, "%s/from_c", argv[1]);

  struct mdfs_ioc_geometry geometry = {.struct_bytes = sizeof geometry,
                                       .rank = 2,
                                       .type = 1,
                                       .channels = CHANNELS,
                                       .codec = 1,
                                       .codec_level = 3,
                                       .shape = {HEIGHT, WIDTH},
                                       .row_offset = -1,
                                       .plane_offset = -1};
  CHECK(mdfs_create(path, &geometry, 0644) == 0);
  CHECK(mdfs_create(path, &geometry, 0644) == -EEXIST);
  mdfs_image* image = NULL;
  CHECK(mdfs_open(path, O_RDWR, &image) == 0);
  struct mdfs_ioc_geometry found;
  CHECK(mdfs_info(image, &found) == 0);
  CHECK(found.rank == 2 && found.shape[0] == HEIGHT && found.shape[1] == WIDTH && found.channels == CHANNELS);
  CHECK(strcmp(found.axes, "yx") == 0 && found.extent[0] > 0 && found.size_bytes == HEIGHT * WIDTH * CHANNELS);

  fill(image);
  strides(image);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i) CHECK(pthread_create(&threads[i], NULL, read_windows, image) == 0);
  for (int i = 0; i < THREADS; ++i) CHECK(pthread_join(threads[i], NULL) == 0);

  codecs();
  levels(image);
  struct mdfs_ioc_window window;
  struct mdfs_ioc_plan* plan = malloc(sizeof *plan);
  CHECK(plan != NULL && mdfs_parse_window(image, "y0+100", &window) == 0);
  CHECK(mdfs_sync(image) == 0);
  CHECK(mdfs_plan(image, &window, plan) == 0);
  CHECK(plan->extents > 0 && plan->disk_count > 0);
  free(plan);
  CHECK(mdfs_close(image) == 0);
  errors(argv[1], path);
  descriptor(path, &geometry);
  CHECK(unlink(path) == 0);
  puts("libmdfs works");
  return 0;
}
