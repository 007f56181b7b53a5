// What lib has.
int wide(int);
int middle(int);
int leaf(int);
