/* import_tensors.h - what the importers share: the tensors of one or more files under one roof,
 * what config.json and the metadata say, and weights fetched by name and shape.
 *
 * The first failure sticks: it is written to `err`, `st` remembers it, every later call does
 * nothing and gives absent weights. So an importer reads straight down and looks at `st` where it
 * needs a number, and at the end. */
#ifndef PARE_SRC_IMPORT_TENSORS_H
#define PARE_SRC_IMPORT_TENSORS_H
#include "base/json.h"
#include <pare/model.h>
#include "model/safetensors.h"

typedef struct im_tensor {
    const char *key;  /* the name without a leading transformer., model. or bert. */
    const char *name; /* as the file has it */
    pare_array array; /* data may be unaligned */
    pare_blob *blob;  /* where the data lives; NULL: in the model's arena */
    bool used;
} im_tensor;

/* How outputs are made of the last rows where the family's own head is not used: as
 * sentence-transformers' files say, or as the caller does. */
typedef struct im_pooling {
    bool given, told; /* told: by the caller */
    pare_pool pool;
    bool normalize;
    const char *dense; /* the weights of a dense layer behind the pooling; NULL: there is none */
    size_t width;      /* of the rows, as the pooling's config says; 0: it does not */
    size_t dense_in, dense_out;
    bool dense_bias;
    pare_act act; /* behind it */
} im_pooling;

typedef struct im_source {
    pare_model *m;       /* being filled */
    pare_arena *scratch; /* names, headers: gone when the import is over */
    const char *path;    /* as the user gave it */
    pare_files *in;      /* through which every file is read */
    size_t nfiles;
    pare_blob **blobs; /* nfiles, one reference each */
    st_file *files;
    size_t n;
    im_tensor *tensors; /* by key */
    cJSON *config;      /* config.json or NULL */
    bool input_first;   /* matrices are stored [in, out]: y = x W */
    bool linear_given;  /* the metadata said so, or the opposite */
    im_pooling pooling;
    const char *folder;    /* with the files of the transformer; NULL: the model is a file */
    size_t max_seq_length; /* of sentence_bert_config.json; 0: none */
    pare_status st;
    pare_err *err;
} im_source;

/* ---- opening and closing (import_open.c) --------------------------------------------------- */

/* One safetensors file, with config.json beside it if there is one. */
void im_open_file(im_source *s, const char *path);
/* Every shard that model.safetensors.index.json names; each tensor must be where it says. */
void im_open_index(im_source *s, const char *path);
extern const char im_understood[]; /* what pare reads, for messages */
/* The name of a tensor without the wrapper around the model: "bert.", "model.", ... */
const char *im_key(const char *name);
/* Shards by their names alone, sorted. */
void im_open_shards(im_source *s, const char *folder, char *const *names, size_t n);
/* A JSON file; *out NULL where the file is not there. The caller deletes it. */
void im_read_json(im_source *s, cJSON **out, const char *path);
/* A folder as Hugging Face and sentence-transformers lay it out (import_folder.c). */
void im_open_folder(im_source *s, const char *path);
/* The folder's tokenizer into the model that was read; without it where it cannot be read, with a
 * note. */
void im_take_tokenizer(im_source *s);
/* The members of an npz that `wanted` accepts, decoded into the model's arena. */
void im_open_npz(im_source *s, pare_blob *b, bool (*wanted)(const char *name));
/* Puts the tensors in the order im_find needs; a key given twice fails. */
void im_sort(im_source *s);
void im_close(im_source *s);

/* ---- failing -------------------------------------------------------------------------------- */

#define IM_PICKLED "a PyTorch pickle, which can run code when it is read: save it as safetensors"
void im_fail(im_source *s, const char *fmt, ...) PARE_PRINTF(2, 3); /* PARE_ERR_INPUT */
/* A line for the user: what was decided (pare_model.notes). */
void im_note(im_source *s, const char *fmt, ...) PARE_PRINTF(2, 3);
/* Memory in the model's arena, zeroed; NULL (and the failure sticks) when it is out. */
void *im_alloc(im_source *s, size_t count, size_t size);

/* ---- what is there --------------------------------------------------------------------------- */

im_tensor *im_find(const im_source *s, const char *key); /* NULL when absent */
bool im_has(const im_source *s, const char *fmt, ...) PARE_PRINTF(2, 3);
/* The shape of a tensor that must be there with ndim dimensions. */
bool im_shape(im_source *s, size_t *shape, size_t ndim, const char *fmt, ...) PARE_PRINTF(4, 5);
/* Rows of the matrix as we store it: its output width, whatever the file's orientation. */
size_t im_outputs(im_source *s, const char *fmt, ...) PARE_PRINTF(2, 3);
/* How many of before0after, before1after, ... are there without a gap. */
size_t im_count(const im_source *s, const char *before, const char *after);

/* ---- weights: a shape that differs is a failure naming the tensor and both shapes -------------
 */

/* [out, in] in memory. Borrowed from the file where that can be; a copy where it must be transposed
 * round, widened from half precision, or aligned. */
pare_weight im_matrix(im_source *s, size_t out, size_t in, const char *fmt, ...) PARE_PRINTF(4, 5);
/* rows x cols as stored, never transposed: embeddings. */
pare_weight im_table(im_source *s, size_t rows, size_t cols, const char *fmt, ...)
    PARE_PRINTF(4, 5);
pare_weight im_vector(im_source *s, size_t n, const char *fmt, ...) PARE_PRINTF(3, 4);
/* Absent without a failure when `want` is false. */
pare_weight im_vector_if(im_source *s, bool want, size_t n, const char *fmt, ...) PARE_PRINTF(4, 5);
/* name.weight and, when `bias`, name.bias. */
pare_dense im_dense(im_source *s, size_t out, size_t in, bool bias, const char *fmt, ...)
    PARE_PRINTF(5, 6);
/* Rows [from, from + count) of a matrix, or those entries of a vector: a view. */
pare_weight im_part(pare_weight w, size_t from, size_t count);
/* A new weight in the model's arena and where to write it; absent when memory is out. */
pare_weight im_new(im_source *s, pare_dtype dtype, size_t rows, size_t cols, void **data);
/* Copies a rows x cols run of t, from element `from` on, to dst, whose rows are ld long;
 * transposed: dst receives the transpose. dst is f64, or f32 where t is no wider. Marks t as
 * used. */
void im_place(void *dst, pare_dtype dtype, size_t ld, im_tensor *t, size_t from, size_t rows,
              size_t cols, bool transposed);
/* The type t's numbers have in memory: f64 stays, f32 and the halves are f32; others fail. */
pare_dtype im_dtype(im_source *s, const im_tensor *t);

/* Nothing may be left over but what `ignored` names (shell patterns on keys, NULL at the end); a
 * note says what was. */
void im_finish(im_source *s, const char *const *ignored);

/* ---- pieces of models ------------------------------------------------------------------------ */

bool im_blocks(im_source *s, size_t n);
/* Exact attention d -> d with an identity skip and equal heads, kv of them with keys and values of
 * their own; scale 1 / sqrt(dk). Planes > 0: rotary with all of the layer's frequencies. */
void im_attn(im_source *s, pare_attn *at, size_t d, size_t heads, size_t kv, size_t dk,
             size_t planes);
/* wq, wk, wv and their biases out of one [3d, d] matrix. */
void im_split_qkv(pare_attn *at, size_t d, pare_dense qkv);
void im_ffn(im_source *s, pare_ffn *f, pare_ffn_kind kind, size_t d, size_t layers, pare_act act);
/* base^(-2i/dims), i < planes, in f64. */
pare_weight im_frequencies(im_source *s, double base, size_t dims, size_t planes);
pare_norm im_norm(pare_norm_kind kind, size_t d, double eps, pare_weight gain, pare_weight bias);
/* name.weight and, when `bias`, name.bias. */
pare_norm im_layer_norm(im_source *s, size_t d, double eps, bool bias, const char *fmt, ...)
    PARE_PRINTF(5, 6);
/* The embedding and the output matrix `head`: tied when it is not there or holds the same bytes,
 * which must be what tie_word_embeddings says, where it is given. */
void im_tie(im_source *s, const char *embedding, const char *head);
/* The head of a language model: pooled rows, classes of the last token (`score`), or words. */
void im_language_head(im_source *s, const char *embedding, const char *head);

/* The head that sentence-transformers' files or the caller ask for, behind rows of width d; the
 * family's own head is left out. */
void im_pool_head(im_source *s, size_t d);
/* The name for tensors of the dense layer behind the pooling. */
#define IM_DENSE_PREFIX "2_Dense."

/* ---- what config.json and the metadata say (import_config.c): true when they do ---------------
 * The file's own metadata is asked first. Either key may be NULL. A value of the wrong type is a
 * failure. */
bool im_size(im_source *s, size_t *out, const char *meta, const char *config);
bool im_number(im_source *s, double *out, const char *meta, const char *config);
bool im_flag(im_source *s, bool *out, const char *config);
/* The number after `word` in the text of a metadata key: "layer pre eps 1e-5". */
bool im_word_number(im_source *s, double *out, const char *meta, const char *word);
/* The text of a metadata key holds these words. */
bool im_says(const im_source *s, const char *meta, const char *words);
bool im_act(im_source *s, pare_act *out, const char *config);
/* Fails where config.json gives `key` another size than the tensors have. */
void im_agree(im_source *s, const char *key, size_t value);
/* The first of `architectures` has this in its name: "ForTokenClassification". */
bool im_built_for(const im_source *s, const char *task);
/* Fails unless id2label, where it is given, has a label for each of n outputs. */
void im_labels(im_source *s, size_t n);
/* Fails unless config.json is silent on `key` or gives one of the values (NULL at the end). */
void im_expect(im_source *s, const char *key, const char *const *values);
/* A text of config.json. */
bool im_text(im_source *s, const char **out, const char *config);
/* Fails, naming the key, where config.json has it and it is neither null, false, 0 nor empty. */
void im_refuse_key(im_source *s, const char *key, const char *why);
/* Reads the `linear` metadata key; without it the family's own convention holds. */
void im_orientation(im_source *s, bool input_first);
#endif
