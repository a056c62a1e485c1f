// A disk that is slow and even, for one process: preloaded, it paces the reading of files (LD_PRELOAD).
//
// Reads are served one after the other, each in the time that its bytes take at PACER_BYTES_PER_S. A read that the real
// disk, or the page cache, serves sooner waits; a control group would let bytes pass in slices of 100 ms instead. What
// does not come by pread() or fread(), such as mapped files, is not paced, nor are small reads: those of libraries.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 1 << 16 };  // bytes

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int64_t free_at;  // nanoseconds: when the disk has served all reads so far

static int64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

// The time at which a read is done.
static int64_t reserve(int64_t bytes) {
  static double bytes_per_ns;
  pthread_mutex_lock(&mutex);
  if (bytes_per_ns == 0) bytes_per_ns = atof(getenv("PACER_BYTES_PER_S")) / 1e9;
  const int64_t start = free_at > now() ? free_at : now();
  free_at = start + (int64_t)(bytes / bytes_per_ns);
  const int64_t end = free_at;
  pthread_mutex_unlock(&mutex);
  return end;
}

static void wait_for(int64_t end) {
  const struct timespec time = {end / 1000000000, end % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static ssize_t paced_pread(const char *name, int descriptor, void *data, size_t size, off_t offset) {
  ssize_t (*real)(int, void *, size_t, off_t) = (ssize_t (*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, name);
  if (size < SMALL) return real(descriptor, data, size, offset);
  const int64_t end = reserve((int64_t)size);
  const ssize_t count = real(descriptor, data, size, offset);
  wait_for(end);
  return count;
}

ssize_t pread(int descriptor, void *data, size_t size, off_t offset) {
  return paced_pread("pread", descriptor, data, size, offset);
}

ssize_t pread64(int descriptor, void *data, size_t size, off_t offset) {
  return paced_pread("pread64", descriptor, data, size, offset);
}

size_t fread(void *data, size_t size, size_t count, FILE *file) {
  size_t (*real)(void *, size_t, size_t, FILE *) =
      (size_t (*)(void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fread");
  if (size * count < SMALL) return real(data, size, count, file);
  const int64_t end = reserve((int64_t)(size * count));
  const size_t done = real(data, size, count, file);
  wait_for(end);
  return done;
}
