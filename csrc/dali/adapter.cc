// The adapter to DALI as one unit: what DALI's headers cost a compiler is paid once, and one command builds it
// (python/dali_l3/_adapter_build.py).
#include "decoders/encoded_batch.cc"
#include "decoders/l3_decoder.cc"
#include "decoders/l3_decoder_mixed.cc"
#include "decoders/roi.cc"
#include "readers/bucket_objects.cc"
#include "readers/liquid_reader.cc"
#include "readers/multi_format_reader.cc"
#include "readers/reader.cc"
#include "readers/reader_arguments.cc"
#include "readers/reader_schema.cc"
#include "readers/reader_statistics.cc"
