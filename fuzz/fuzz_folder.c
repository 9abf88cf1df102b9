/* Whole Hugging Face folders: records of a file's number, a 16-bit length and the file. */
#include "fuzz.h"

#include <string.h>

static const char *const names[] = {"d/config.json",
                                    "d/model.safetensors",
                                    "d/modules.json",
                                    "d/1_Pooling/config.json",
                                    "d/2_Dense/config.json",
                                    "d/2_Dense/model.safetensors",
                                    "d/sentence_bert_config.json",
                                    "d/config_sentence_transformers.json",
                                    "d/model.safetensors.index.json",
                                    "d/model-00001-of-00002.safetensors",
                                    "d/model-00002-of-00002.safetensors",
                                    "d/other.safetensors",
                                    "d/tokenizer.json",
                                    "d/tokenizer_config.json",
                                    "d/vocab.txt",
                                    "d/pytorch_model.bin",
                                    "d/added_tokens.json",
                                    "d/sentencepiece.bpe.model"};
enum { NAMES = sizeof names / sizeof *names, RECORD = 3 };

/* The record at `at`: which file, and the bytes of it (all that are left, if it claims more). */
static size_t record(const uint8_t *data, size_t size, size_t at, size_t *bytes)
{
    const size_t left = size - at - RECORD;
    *bytes = (size_t)data[at + 1] | (size_t)data[at + 2] << 8;
    if (*bytes > left) *bytes = left;
    return data[at] % NAMES;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    size_t at[64], n = 0, bytes = 0;
    for (size_t i = 0; i + RECORD <= size && n < 64; i += RECORD + bytes) {
        at[n++] = i;
        (void)record(data, size, i, &bytes);
    }
    if (n == 0 || size > max_size || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
    const size_t i = at[seed / 16 % n], name = record(data, size, i, &bytes);
    const bool weights = strstr(names[name], ".safetensors") && !strstr(names[name], ".json");
    const size_t most = max_size < size + 0xFFFF - bytes ? max_size : size + 0xFFFF - bytes;
    bytes = fuzz_mutate_inside(data, &size, most, i + RECORD, bytes,
                               weights ? fuzz_mutate_safetensors : fuzz_mutate_json, seed / 1024);
    data[i + 1] = (uint8_t)bytes;
    data[i + 2] = (uint8_t)(bytes >> 8);
    return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool there[NAMES] = {false};
    pare_model *m = NULL;
    pare_err err = {0};
    size_t bytes = 0;
    for (size_t i = 0; i + RECORD <= size; i += RECORD + bytes) {
        const size_t name = record(data, size, i, &bytes);
        if (!there[name]) fuzz_file(names[name], data + i + RECORD, bytes);
        there[name] = true;
    }
    const pare_status st = pare_model_load(&m, "d", &err);
    fuzz_expect_said(st, &err);
    FUZZ_EXPECT((st == PARE_OK) == (m != NULL));
    if (m) fuzz_run_model(m);
    pare_model_free(m);
    fuzz_no_files();
    return 0;
}
