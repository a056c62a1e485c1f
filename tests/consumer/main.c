/* Encodes a gradient and decodes it again. */
#include <l3/l3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 200, HEIGHT = 100, CHANNELS = 3, SIZE = WIDTH * HEIGHT * CHANNELS };

static int fail(const char *what, const l3_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, l3_status_text(error->status));
  return EXIT_FAILURE;
}

int main(void) {
  static uint8_t pixels[SIZE], decoded[SIZE];
  for (size_t i = 0; i < SIZE; i++) pixels[i] = (uint8_t)(i / 7);

  const l3_image image = {.data = pixels,
                          .row_stride = WIDTH * CHANNELS,
                          .width = WIDTH,
                          .height = HEIGHT,
                          .channels = CHANNELS,
                          .bits = 8};
  const l3_encode_options options = {.profile = L3_PROFILE_FAST, .effort = 2, .checksums = 1};
  const size_t capacity = l3_encode_bound(&image, &options);
  uint8_t *file = malloc(capacity);
  size_t size;
  l3_error error;
  if (l3_encode(&image, &options, file, capacity, &size, &error)) return fail("l3_encode", &error);

  l3_file parsed;
  if (l3_open(file, size, &parsed, &error)) return fail("l3_open", &error);
  const l3_output output = {.data = decoded, .row_stride = WIDTH * CHANNELS};
  if (l3_decode(&parsed, NULL, &output, L3_VERIFY, &error)) return fail("l3_decode", &error);
  if (memcmp(pixels, decoded, SIZE)) return EXIT_FAILURE;
  printf("l3 %s (%s): %d bytes of pixels in %zu\n", l3_version(), l3_backend(), SIZE, size);
  free(file);
  return EXIT_SUCCESS;
}
