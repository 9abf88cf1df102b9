/* import_families.h - one importer per family; import.c asks them in turn. */
#ifndef PARE_SRC_IMPORT_FAMILIES_H
#define PARE_SRC_IMPORT_FAMILIES_H
#include "import_tensors.h"

/* Each pair: are these our tensors; fill s->m from them. The caller looks at s->st. */
bool im_is_gpt2(const im_source *s);
void im_gpt2(im_source *s);
bool im_is_llama(const im_source *s);
void im_llama(im_source *s);
bool im_is_bert(const im_source *s);
void im_bert(im_source *s);
/* RoBERTa and XLM-R: BERT's tensors, told by config.json alone. */
void im_roberta(im_source *s);
bool im_is_distilbert(const im_source *s);
void im_distilbert(im_source *s);
bool im_is_perhead(const im_source *s);
void im_perhead(im_source *s);
bool im_is_graph(const im_source *s);
void im_graph(im_source *s);
bool im_is_moonshine(const im_source *s);
void im_moonshine(im_source *s);

/* The npz forms: which members are weights, and the model. */
bool im_depth_member(const char *name);
bool im_is_depth(const im_source *s);
void im_depth(im_source *s);
bool im_width_member(const char *name);
bool im_is_width(const im_source *s);
void im_width(im_source *s);

/* llama2.c's legacy .bin has no magic number: its seven header words and the file's size must
 * agree. `im_llama2c_header`: the words alone are believable. */
bool im_llama2c_header(const pare_blob *b);
void im_llama2c(im_source *s, pare_blob *b);
#endif
