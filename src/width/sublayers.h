/* sublayers.h - a model cut into its sublayers. Private to the room. */
#ifndef PARE_SRC_WIDTH_SUBLAYERS_H
#define PARE_SRC_WIDTH_SUBLAYERS_H
#include "matrices.h"
#include <pare/model.h>

/* Views, one sublayer to a block, so that every place of the stream is where some block begins. */
pare_model sublayers_of(pare_work *w, const pare_model *m);
#endif
