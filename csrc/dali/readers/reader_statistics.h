// How a Python program gets at the statistics of a reader in a pipeline.
#pragma once

namespace dali_l3 {

class Reader;

// DALI hands out no operators, but calls GetReaderMeta of the one that a program asks a pipeline about, in the thread
// that asks. There the reader announces itself, and dali_l3_reader_statistics, called next in the same thread, knows
// whom to ask. Programs ask for other reasons too, so dali_l3_forget_reader comes first.
void AnnounceReader(const Reader &reader);

}  // namespace dali_l3
