struct Base {
    virtual int value(int x);
    virtual ~Base();
};
struct Derived : Base {
    int value(int x) override;
};
int Base::value(int x) { return x * 3; }
Base::~Base() {}
int Derived::value(int x) { return x + 1; }
int call(Base *object) { return object->value(2); }
int both(int x) {
    Derived derived;
    return call(&derived) + x;
}
